"""Names of the functions of array libraries that an op may carry: numpy's, and a few of the libraries of networks.

A name beyond these is accepted where the `kernels` of the op's own cpu have it.
Source: numpy 2 (its ufuncs, reductions, constructors and distributions).
"""

from __future__ import annotations

from typing import Final

_NAMES: Final = """
    abs absolute acos acosh add add_at all allclose angle any append arange arccos arccosh arcsin arcsinh arctan arctan2
    arctanh argmax argmin argpartition argsort argwhere around array array_equal asanyarray asarray ascontiguousarray
    asfortranarray asin asinh astype atan atan2 atanh atleast_1d average bartlett beta bincount binomial bitwise_and
    bitwise_count bitwise_invert bitwise_left_shift bitwise_not bitwise_or bitwise_or_at bitwise_right_shift bitwise_xor
    blackman block broadcast_to cbrt ceil chisquare choice cholesky choose clip column_stack compress concatenate conj
    conjugate convolve copy copysign copyto corrcoef correlate cos cosh count_nonzero cov cross cummax cummin cumprod
    cumsum deg2rad degrees delete det diag diagonal diff digitize dirichlet divide divmod dot dstack ediff1d eig eigh
    eigvals eigvalsh einsum empty empty_like equal erf exp exp2 expand_dims expm1 exponential eye f fabs fft fft2 fftn
    fftshift fill fill_diagonal flatnonzero flatten flip fliplr flipud float_power floor floor_divide fmax fmin fmod
    frexp frombuffer fromfile fromfunction fromiter full full_like gamma gcd gelu genfromtxt geometric geomspace getitem
    gradient greater greater_equal gumbel hamming hanning heaviside histogram histogram2d hstack hypergeometric hypot
    identity ifft ifft2 ifftn ifftshift imag index index_cast indices inner insert integers interp intersect1d inv
    invert irfft irfft2 irfftn isclose isfinite isin isinf isnan isnat ix_ kaiser kron laplace layernorm lcm ldexp
    left_shift less less_equal lexsort linspace load loadtxt log log10 log1p log2 logaddexp logaddexp2 logical_and
    logical_not logical_or logical_or_at logical_xor logistic lognormal logseries logspace lstsq matmul matrix_power
    matrix_rank matvec max maximum maximum_at mean median meshgrid min minimum minimum_at mixed mod modf moveaxis mT
    multinomial multiply multiply_at multivariate_hypergeometric multivariate_normal nan_to_num nanmax nanmean nanmedian
    nanmin nanpercentile nanstd nansum nanvar negative negative_binomial nextafter noncentral_chisquare noncentral_f
    nonzero norm normal not_equal ones ones_like outer pad pareto partition pass percentile permutation permuted pinv
    place poisson polyfit polyval positive pow power prod ptp put put_along_axis putindices putmask qr quantile rad2deg
    radians rand randint randn random random_sample ranf ravel rayleigh real reciprocal relu remainder repeat reshape
    rfft rfft2 rfftn right_shift rint roll rot90 round sample searchsorted setdiff1d setmask shuffle sigmoid sign
    signbit sin sinh slice slogdet softmax solve sort spacing split sqrt square squeeze stack standard_cauchy
    standard_exponential standard_gamma standard_normal standard_t std subtract subtract_at sum svd svdvals swapaxes T
    take take_along_axis takecolumns takerows tan tanh tensordot tile trace transpose trapezoid tri triangular tril triu
    true_divide trunc uniform union1d unique unwrap vander var vdot vecdot vecmat view vonmises vstack wald weibull
    where window zeros zeros_like zipf
"""
FUNCTIONS: Final = frozenset(_NAMES.split())
