"""Figure of a validated calibration: predicted against measured time, and how the errors are spread."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from hwsim.views.kit.figure import COLOURS, figure_bytes

Points = Sequence[tuple[float, float]]  # seconds measured, predicted


def render(groups: Mapping[str, Points], suffix: str) -> Iterable[bytes]:
    """The figure as bytes.

    Raises:
        ValueError: the suffix is none of .png, .svg, .pdf.
    """
    with figure_bytes(suffix, width=11, height=5) as (figure, buffer):
        left, right = figure.subplots(1, 2)
        every = [each for points in groups.values() for pair in points for each in pair]
        low, high = (min(every) / 1.5, max(every) * 1.5) if every else (1e-6, 1.0)
        left.plot([low, high], [low, high], color="0.6", linewidth=1)
        left.fill_between([low, high], [low / 1.25, high / 1.25], [low * 1.25, high * 1.25], color="0.9", zorder=0)
        for number, (name, points) in enumerate(groups.items()):
            colour = COLOURS[number % len(COLOURS)]
            left.scatter([one for one, _ in points], [two for _, two in points], s=10, color=colour, label=name)
            errors = sorted(abs(two / one - 1.0) * 100 for one, two in points)
            right.plot(errors, [100 * (at + 1) / len(errors) for at in range(len(errors))], color=colour, label=name)
        left.set(xscale="log", yscale="log", xlabel="measured, s", ylabel="predicted, s", title="within 25 %: grey")
        right.set(xscale="symlog", xlabel="error, %", ylabel="cases with less, %", ylim=(0, 100), title="errors")
        right.grid(color="0.9")
        if groups:
            left.legend(frameon=False)
    yield buffer.getvalue()
