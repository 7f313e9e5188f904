"""Names of the functions of array libraries that an op may carry: numpy's, and a few of the libraries of networks.

A name beyond these is accepted where the `kernels` of the op's own cpu have it.
Source: numpy 2 (its ufuncs, reductions, constructors and distributions).
"""

from __future__ import annotations

from typing import Final

_NAMES: Final = """
    T abs absolute acos acosh add all any arange arccos arccosh arcsin arcsinh arctan arctan2 arctanh argmax argmin
    argpartition argsort around array asanyarray asarray ascontiguousarray asfortranarray asin asinh astype atan atan2
    atanh atleast_1d average beta bincount binomial bitwise_and bitwise_count bitwise_invert bitwise_left_shift
    bitwise_not bitwise_or bitwise_right_shift bitwise_xor broadcast_to cbrt ceil chisquare choice choose clip
    column_stack compress concatenate conj conjugate copy copysign copyto cos cosh cov cumprod cumsum deg2rad degrees
    diag diagonal diff dirichlet divide divmod dot dstack einsum empty empty_like equal erf exp exp2 expand_dims expm1
    exponential eye f fabs fill fill_diagonal flatten flip float_power floor floor_divide fmax fmin fmod frexp
    frombuffer fromfile fromfunction fromiter full full_like gamma gcd gelu genfromtxt geometric geomspace getitem
    gradient greater greater_equal gumbel heaviside histogram hstack hypergeometric hypot identity imag index indices
    inner integers invert isfinite isinf isnan isnat kron laplace layernorm lcm ldexp left_shift less less_equal
    linspace load loadtxt log log10 log1p log2 logaddexp logaddexp2 logical_and logical_not logical_or logical_xor
    logistic lognormal logseries logspace mT matmul matvec max maximum mean median meshgrid min minimum mixed mod modf
    moveaxis multinomial multiply multivariate_hypergeometric multivariate_normal nan_to_num negative negative_binomial
    nextafter noncentral_chisquare noncentral_f nonzero norm normal not_equal ones ones_like outer pad pareto partition
    pass permutation permuted place poisson positive pow power prod ptp put put_along_axis putmask rad2deg radians rand
    randint randn random random_sample ranf ravel rayleigh real reciprocal relu remainder repeat reshape right_shift
    rint round sample searchsorted shuffle sigmoid sign signbit sin sinh slice softmax sort spacing split sqrt square
    squeeze stack standard_cauchy standard_exponential standard_gamma standard_normal standard_t std subtract sum
    swapaxes take takerows tan tanh tensordot tile trace transpose tri triangular true_divide trunc uniform unique var
    vdot vecdot vecmat view vonmises vstack wald weibull where window zeros zeros_like zipf
"""
FUNCTIONS: Final = frozenset(_NAMES.split())
