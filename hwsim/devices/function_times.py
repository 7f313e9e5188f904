"""Usual times of numpy's functions, in ns: of a call, and of an element by number format, with all operands in the first cache.

Functions of linear algebra and transforms count steps, as recorded workloads do (`hwsim_calibrate.recording.algebra`); sorting
counts elements times log2 of their number.

Source: measured by `hwsim calibrate`, numpy 2.4.6 with OpenBLAS on one core of an AMD EPYC 9004 (Zen 4, AVX-512).
Range: ratios between functions; see `stand_in`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

CLOCK: Final = 3.7e9  # Hz of that core
_TIMES: Final = """
absolute: 275 complex128=0.678 complex64=0.24 fp64=0.0249 int32=0.0059 int8=0.00372
add: 356 complex128=0.0312 complex64=0.011 fp16=4.62 fp32=0.0067 fp64=0.0144 int16=0.00378 int32=0.00246 int64=0.0107
  int8=0.00164
add across: 551 fp32=0.228 fp64=0.118 int64=0.237 int8=0.397
add column: 260 fp64=0.404 int64=0.266 int8=0.0804
add row: 766 fp32=0.11 fp64=0.24 int64=0.226 int8=0.0275
add scalar: 451 fp32=0.00629 fp64=0.00137 int32=0.0086 int64=0.00185 int8=0.00806
add strided: 845 fp32=0.113 fp64=0.235 int32=0.119
add_at: 838 fp64=0.654 int64=0.543
all: 1985 int64=0.108
all method: 986 fp32=0.0851 fp64=0.119 int32=0.0788 int64=0.113 int8=0.0411
allclose: 15127 fp64=1.59
any: 2281 int64=0.096
any columns method: 225 fp32=0.152 fp64=0.186 int64=0.181 int8=0.108
any method: 980 fp32=0.0722 fp64=0.105 int32=0.066 int64=0.1 int8=0.0288
any rows method: 255 fp32=0.209 fp64=0.243 int64=0.237 int8=0.163
append: 1412 fp64=0.0366
arange: 337 int64=0.192
arccos: 242 fp32=0.327 fp64=1.18
arcsin: 244 fp32=0.311 fp64=1.09
arctan: 229 fp32=0.335 fp64=1.05
arctan2: 277 fp32=0.481 fp64=1.93
arctan2 column: 300 fp64=2.06
argmax: 1054 int64=0.0198
argmax columns method: 314 fp32=0.489 fp64=0.436 int64=0.396 int8=0.786
argmax method: 126 fp32=0.0356 fp64=0.0679 int32=0.0141 int64=0.0197 int8=0.00738
argmax rows method: 130 fp32=0.104 fp64=0.0645 int64=0.0253 int8=0.426
argmin: 1413 fp32=0.0369 fp64=0.0471
argmin method: 138 fp32=0.0344 fp64=0.066 int32=0.0121 int64=0.0195 int8=0.0073
argmin rows: 1413 fp32=0.0369 fp64=0.0471
argpartition: 1228 fp64=8.36
argsort: 467 fp32=2.36 fp64=2.36 int32=2.35 int64=2.57 int8=2.16
argsort few: 1 fp32=2.3 fp64=2.63 int32=2.22 int64=2.21 int8=1.84
argsort sorted: 1196 fp32=0.15 fp64=0.154 int32=0.142 int64=0.147 int8=0.349
argsort stable: 1 fp64=1.18 int32=1.14 int64=1.64
argsort stable few: 1307 fp64=3.5 int64=1.06 int8=0.14
argsort stable sorted: 1644 fp64=0.0706 int64=0.0285
array_equal: 1613 fp64=0.0637
astype: 310 fp16=2.4 fp64=0.0178 int8=0.0301
astype from bool: 198 fp32=0.0412 fp64=0.114 int64=0.111
astype from fp32: 310 fp16=2.4 fp64=0.0178 int8=0.0301
astype from fp64: 100 complex128=0.0571 int32=0.015 int64=0.364 int8=0.0699
astype from int32: 133 fp64=0.0318 int64=0.0317
astype from int64: 92 fp32=0.184 fp64=0.143 int32=0.0136 int8=0.0304
astype from int8: 328 fp32=0.0469 fp64=0.0629 int16=0.00457 int32=0.026 int64=0.0883
beta: 763 fp64=37.6
beta generator: 763 fp64=37.6
bincount: 488 fp64=0.848
bincount few: 765 fp64=0.877
bincount narrow few: 539 fp64=1.02
bincount plain: 402 fp64=0.774
bincount plain few: 381 fp64=0.748
bincount plain narrow few: 259 fp64=0.958
bincount plain sorted: 216 fp64=0.925
bincount sorted: 6319 fp64=2.36
binomial: 727 int64=62.8
binomial generator: 727 int64=62.8
bitwise_and: 255 bool=0.00883 int32=0.00899 int64=0.0251 int8=0.0083
bitwise_and scalar: 446 int32=0.0106 int64=0.0465 int8=0.00809
bitwise_or: 271 bool=0.0077 int32=0.00853 int64=0.0145 int8=0.00658
bitwise_xor: 272 bool=0.00858 int32=0.00708 int64=0.0154 int8=0.00727
cbrt: 243 fp32=0.253 fp64=0.818
ceil: 243 fp32=0.00407
choice: 7401 int64=2.77
choice generator: 7401 int64=2.77
cholesky: 3632 fp32=0.0621 fp64=0.0224
clip: 1389 fp32=0.0868 fp64=0.0766 int64=0.268 int8=0.509
clip scalar: 1389 fp32=0.0868 fp64=0.0766 int64=0.268 int8=0.509
column_stack: 1528 fp64=0.144
compress: 1 fp32=2.31 fp64=2.78 int64=2.19 int8=2.17
compress rare: 3 fp64=0.891
compress runs: 387 fp32=0.204 fp64=0.21 int64=0.201 int8=0.198
concatenate: 126 bool=0.0197 fp32=0.0144 fp64=0.0129 int64=0.0279 int8=0.02
conjugate: 273 complex128=0.015 complex64=0.000511
convolve: 777 fp64=0.117
copy: 109 fp32=0.00571 int64=0.0104
copysign: 259 fp32=0.449 fp64=0.353
copyto: 273 bool=0.00717 fp32=0.00658 fp64=0.0106 int64=0.0105 int8=0.00465
copyto across: 0 fp32=0.547 fp64=0.566 int8=0.274
copyto from fp64: 369 fp32=0.0122
copyto strided: 467 fp64=0.0182
corrcoef: 21700 fp64=7.95
cos: 420 fp32=0.45 fp64=15.7
cosh: 250 fp32=0.265 fp64=0.781
count_nonzero: 267 bool=0.0287 int64=0.084
cov: 14177 fp64=6.71
cross: 14861 fp64=2.38
cummax: 330 fp64=3.22 int64=2.93
cummin: 332 fp64=3.21 int64=2.93
cumprod: 1468 fp32=3.25 fp64=3.22 int64=0.771 int8=1.04
cumsum: 1471 int64=0.352
cumsum columns method: 15 fp32=3.35 fp64=3.33 int64=2.27 int8=2.5
cumsum method: 713 bool=0.636 fp32=3.24 fp64=3.22 int32=0.559 int64=0.344 int8=0.789
cumsum rows method: 2449 fp32=3.06 fp64=3.07 int64=0.356 int8=0.773
det: 3006 fp64=0.0375
diff: 1874 fp32=0.0196 fp64=0.0357 int64=0.00855 int8=0.00872
divide: 398 complex128=2.13 complex64=2.24 fp32=0.00871 fp64=0.101 int32=0.499 int64=0.752 int8=0.582
divide column: 1363 fp32=0.104 fp64=0.314
divide row: 266 fp32=0.116 fp64=0.374
divide scalar: 852 fp32=0.0115 fp64=0.153 int32=0.383 int64=0.498 int8=0.436
dstack: 1885 fp64=0.144
eig: 12298 fp64=4.58
eigh: 9675 fp64=0.767
eigvals: 26227 fp64=1.79
eigvalsh: 6265 fp64=0.357
einsum: 2056 fp32=0.277 fp64=0.285
einsum inner: 1731 fp32=0.0603 fp64=0.105
einsum one: 1644 fp32=0.154 fp64=0.121
einsum outer: 2056 fp32=0.277 fp64=0.285
equal: 274 bool=0.00914 fp32=0.0196 fp64=0.0252 int32=0.0153 int64=0.0223 int8=0.0171
equal scalar: 446 int32=0.0193 int64=0.0837 int8=0.00947
exp: 365 complex128=6.3 complex64=27.6 fp32=0.371 fp64=0.632 int32=0.847 int64=0.994 int8=2.77
exp2: 247 fp32=0.138 fp64=0.564
expm1: 406 fp32=0.266 fp64=0.962
exponential: 606 fp64=4.85
exponential generator: 606 fp64=4.85
eye: 1094 fp64=0.0399
fft: 4417 complex128=0.124 complex64=0.141
fft rough: 8239 complex128=0.824
fft2: 12056 complex128=0.094
fill: 156 fp32=0.0257 fp64=0.0505 int64=0.0491
fill across: 366 bool=0.263 fp64=0.194
fill empty: 436
floor: 240 fp32=0.00407
floor_divide: 259 fp32=10.6 fp64=10.3 int32=1.54 int64=1.71 int8=1.07
floor_divide scalar: 445 fp32=9.89 fp64=9.63 int32=0.131 int64=0.495 int8=0.0193
fmod: 282 fp32=2.35 fp64=2
gamma: 739 fp64=19.6
gamma generator: 739 fp64=19.6
gradient: 7025 fp64=1.82
greater: 503 fp16=1.84 fp32=0.00827 fp64=0.014 int32=0.002 int64=0.00797 int8=0.00317
greater column: 264 fp32=0.119 fp64=0.242
greater row: 262 fp32=0.111 fp64=0.25
greater scalar: 503 fp32=0.00827 fp64=0.014 int32=0.0161 int64=0.0427 int8=0.00872
greater_equal: 293 fp32=0.0192 fp64=0.0241
hanning: 3514 fp64=9.7
histogram: 37166 fp64=5.83
hypot: 276 fp32=3.71 fp64=5.6
ifft: 4797 complex128=0.151
ifft2: 16501 complex128=0.0982
index: 95 fp32=0.229 fp64=0.277 int64=0.199 int8=0.0235
index_cast: 786 fp64=0.861 int32=0.861 int8=0.764
indices: 747 fp64=2.41
integers: 4207 int64=3
integers generator: 6071 int64=2.21
interp: 0 fp64=5.51
interp sorted: 1256 fp64=3
intersect1d: 2584 fp64=144
inv: 4502 fp32=0.3 fp64=0.213
invert: 228 bool=0.00902 int32=0.00819 int64=0.0027 int8=0.00649
irfft: 4244 complex128=0.0744
isclose: 13131 fp64=1.52
isfinite: 257 fp32=0.0262 fp64=0.0659
isin: 10535 int64=49.2
isnan: 247 fp32=0.0202 fp64=0.0469
kron: 12350 fp64=1.2
left_shift: 292 int32=0.00744 int64=0.0298 int8=0.101
left_shift scalar: 470 int32=0.00722 int64=0.00179 int8=0.261
less: 293 fp32=0.0191 fp64=0.0237 int32=0.014 int64=0.0218 int8=0.0156
lexsort: 3 int64=80.1
linspace: 3861 fp64=0.655
log: 358 fp32=0.291 fp64=0.607 int32=0.826 int64=0.989 int8=2.7
log10: 244 fp32=0.155 fp64=0.688
log1p: 455 fp32=0.339 fp64=0.812
log2: 247 fp32=0.181 fp64=0.732
logical_and: 276 bool=0.00857 fp32=0.756 fp64=0.694 int32=0.0284 int64=0.104 int8=0.00841
logical_not: 226 bool=0.00868 fp32=0.594 fp64=0.556
logical_or: 272 bool=0.00816 fp32=0.761 fp64=0.698
lstsq: 10289 fp64=0.93
matrix_power: 2823 fp64=0.0688
matrix_rank: 21934 fp64=0.633
matvec: 774 fp32=0.0122 fp64=0.031
max: 1900 fp32=0.0144 fp64=0.0202 int64=0.0262
max columns: 1992 fp32=0.0332 fp64=0.0601
max columns method: 206 fp32=0.182 fp64=0.274 int64=0.122 int8=0.0721
max method: 1019 fp32=0.0177 fp64=0.0244 int32=0.0151 int64=0.0199 int8=0.00812
max rows method: 1900 fp32=0.0301 fp64=0.0383
maximum: 395 fp32=0.0106 fp64=0.0211 int32=0.00349 int64=0.0105 int8=0.0018
maximum column: 280 fp64=0.197
maximum scalar: 463 fp32=0.295 fp64=0.304 int64=0.147
maximum.reduce: 995 fp64=0.019
mean: 3324 fp32=0.118 fp64=0.0833 int64=0.396
mean columns method: 3001 fp32=0.0674 fp64=0.113 int64=0.385 int8=0.31
mean method: 3291 bool=0.387 fp32=0.14 fp64=0.0998 int32=0.303 int64=0.412 int8=0.345
mean rows method: 3324 fp32=0.118 fp64=0.0833 int64=0.379 int8=0.313
median: 9010 fp32=2.96 fp64=3.59 int64=1.3
min: 2014 int64=0.0203
min method: 1023 fp32=0.0178 fp64=0.0238 int32=0.0155 int64=0.0185 int8=0.00762
minimum: 278 fp32=0.0114 fp64=0.0212 int32=0.0108 int64=0.0154 int8=0.00706
minimum scalar: 275 fp32=0.312 int64=0.161
multiply: 603 complex128=0.0425 complex64=0.0123 fp16=4.71 fp32=0.00347 fp64=0.0044 int64=0.0113
multiply column: 278 fp32=0.15 fp64=0.262
multiply mask: 610 fp32=0.13 fp64=0.305
multiply row: 260 fp32=0.116 fp64=0.238
multiply same: 374 fp32=0.0138 fp64=0.013
multiply scalar: 603 complex128=0.0212 fp32=0.00347 fp64=0.0044 int8=0.00293
multiply strided: 298 fp64=0.258
nan_to_num: 6027 fp64=0.969
nan_to_num scalar: 6027 fp64=0.969
nanmax: 3561 fp64=0.0294
nanmean: 10027 fp64=0.843
nansum: 4235 fp64=0.487
negative: 352 fp32=0.00693 fp64=0.0122 int32=0.00322
nonzero: 675 bool=0.396 fp64=1.92
nonzero rare: 489 bool=0.301
nonzero runs: 681 bool=0.196
norm: 1141 fp32=0.00959 fp64=0.0217
norm axis: 2468 fp32=0.0502 fp64=0.172
normal: 682 fp64=16.2
normal generator: 722 fp64=10.3
not_equal: 284 fp32=0.019 fp64=0.024
outer: 1661 fp64=0.432
pad: 12836 fp32=0.0648 fp64=0.0823 int64=0.0524 int8=0.0545
partition: 361 fp32=6.65 fp64=7.96 int64=7.16
percentile: 27847 fp32=4.71 fp64=18 int64=4.45
permutation: 300 int64=8.39
permutation generator: 300 int64=8.39
pinv: 21344 fp64=1.57
poisson: 635 int64=42.2
poisson generator: 635 int64=42.2
polyfit: 20246 fp64=73.5
polyval: 5702 fp64=1.65
power: 262 fp32=0.575 fp64=2.04 int32=1.63 int64=2.08 int8=2.69
power column: 300 fp64=2.11
power scalar: 458 fp32=1.09 fp64=2.41 int32=0.723 int64=0.872 int8=0.409
power signed: 599 fp32=58.4 fp64=56.8
prod: 1970 int64=0.424
prod method: 887 bool=0.689 fp32=1.03 fp64=0.787 int32=0.608 int64=0.425 int8=0.677
ptp: 3021 fp64=0.104
put: 115 fp32=0.422 fp64=0.355 int64=0.418 int8=0.404
putindices: 988 fp64=2.6
qr: 14463 fp64=0.249
random: 629 fp64=3.96
random generator: 755 fp32=1.74 fp64=2.09
reciprocal: 233 fp32=0.139 fp64=0.529
remainder: 262 fp32=7 fp64=6.95 int32=1.54 int64=1.7 int8=1.07
remainder scalar: 437 fp32=8.44 fp64=8.35 int32=1.57 int64=1.77 int8=1.08
repeat: 1026 fp32=0.49 fp64=0.573 int64=0.572 int8=0.531
reshape: 89
rfft: 4029 complex128=0.0704
rfft rough: 7563 complex128=0.828
rfft2: 14638 complex128=0.0337
right_shift: 284 int32=0.00798 int64=0.0296 int8=0.101
right_shift scalar: 451 int32=0.00792 int64=0.000989 int8=0.0188
rint: 240 fp32=0.0041 fp64=0.000562
roll: 5179 fp32=0.0221 fp64=0.0372 int64=0.0358 int8=0.0132
round: 1115 fp64=0.00278
round scalar: 1115 fp64=0.00278
searchsorted: 0 fp32=6.23 fp64=5.36 int64=5.53
searchsorted sorted: 950 fp32=1.14 fp64=0.953 int64=0.813
setdiff1d: 10331 fp64=72.7
setmask: 1 fp64=2.13 int8=2.12
setmask runs: 383 fp64=0.154 int8=0.194
setmask scalar: 1 fp64=1.82 int8=2.3
setmask scalar rare: 18 fp64=0.784 int8=0.92
setmask scalar runs: 571 fp64=0.183 int8=0.191
shuffle: 916 fp64=8.7
sign: 245 fp32=0.344 fp64=0.433 int32=0.0119 int8=0.00532
sin: 355 fp32=0.442 fp64=15.1 int32=9.13 int64=9.42 int8=2.8
sinh: 244 fp32=0.289 fp64=1.01
slice: 122
slogdet: 4459 fp64=0.0738
solve: 4571 fp32=0.0844 fp64=0.0638
sort: 296 fp32=0.901 fp64=1.45 int32=1.03 int64=2.03 int8=1.35
sort across: 1 fp64=0.728
sort few: 1 fp32=0.99 fp64=2.05 int32=0.748 int64=1.77 int8=1.52
sort sorted: 337 fp32=0.951 fp64=1.42 int32=0.953 int64=1.39 int8=0.365
sort stable: 1 fp64=1.29 int32=2 int64=2.76
sort stable few: 1460 fp64=1.27 int64=1.53 int8=0.0749
sort stable sorted: 958 fp64=0.0581 int64=0.0179
sqrt: 334 complex128=3.77 complex64=21.6 fp32=0.269 fp64=0.995 int32=1.2 int64=1.33 int8=7.37
square: 338 complex128=0.0271 fp64=0.0172 int32=0.00731 int64=0.000825 int8=0.00469
stack: 2318 fp32=0.012 fp64=0.0166 int64=0.0166 int8=0.013
standard_normal: 908 fp32=8.49 fp64=9.1
standard_normal generator: 908 fp32=8.49 fp64=9.1
std: 8812 int64=1.15
std columns method: 7848 fp32=0.411 fp64=0.822 int64=1.42 int8=1.26
std method: 8301 bool=1.43 fp32=0.475 fp64=0.576 int32=0.945 int64=1.2 int8=0.994
std rows method: 8029 fp32=0.57 fp64=0.811 int64=1.38 int8=1.19
subtract: 835 complex128=0.00201 fp32=0.00121
subtract column: 835 fp32=0.13 fp64=0.247
subtract row: 298 fp64=0.644
subtract scalar: 92 fp32=0.028 fp64=0.0237 int64=0.0243
subtract strided: 297 fp64=0.241
sum: 2095 fp32=0.122 fp64=0.0985 int64=0.0281
sum columns: 2074 fp32=0.0282 fp64=0.104
sum columns method: 999 fp32=0.0453 fp64=0.095 int64=0.0565 int8=0.306
sum method: 922 bool=0.3 fp32=0.123 fp64=0.0999 int32=0.218 int64=0.0314 int8=0.284
sum rows: 2200 fp32=0.113 fp64=0.0877
sum rows method: 1232 fp32=0.112 fp64=0.0844 int64=0.00576 int8=0.256
svd: 13351 fp32=1.69 fp64=1.54
svdvals: 15725 fp64=0.626
take: 913 fp32=0.025
take_along_axis: 3700 fp64=2.58
takecolumns: 2 int8=0.0851
takerows: 781 fp32=0.033 fp64=0.000599
tan: 253 fp32=0.321 fp64=1.19
tanh: 379 fp32=0.281 fp64=1.51
tile: 2893 fp32=0.0248 fp64=0.0555 int64=0.0528 int8=0.00819
transpose: 36
trapezoid: 3369 fp64=0.827
tril: 4188 fp64=0.643
triu: 4194 fp64=0.653
trunc: 251 fp32=0.004
uniform: 1375 fp64=4.77
uniform generator: 1364 fp64=2.93
union1d: 1008 fp64=74.4
unique: 2141 fp32=11.3 fp64=23.1 int32=39.6 int64=58.1
unique few: 2097 fp32=10.8 fp64=22.7 int32=9.34 int64=13.5 int8=4.47
unique more: 4808 fp64=32.6 int64=23.9
unique more few: 5286 fp64=21.8 int64=20.1
unique sorted: 627 fp64=37.2 int64=48.7
unwrap: 10802 fp64=14.5
var: 8381 int64=1.15
var method: 7424 bool=1.44 fp32=0.476 fp64=0.571 int32=0.939 int64=1.19 int8=0.984
vecmat: 1036 fp32=0.00805 fp64=0.0172
vstack: 1855 fp64=0.0136
where: 31 complex128=0.467 complex64=0.669 fp32=1.61 fp64=1.45 int64=1.3 int8=1.44
where rare: 5 fp64=0.462
where runs: 1001 complex128=0.156 complex64=0.346 fp32=0.443 fp64=0.318 int64=0.329 int8=0.522
zeros: 112
"""


def _read() -> dict[str, tuple[float, dict[str, float]]]:
    table = {}
    for line in _TIMES.strip().replace("\n  ", " ").splitlines():
        name, _, numbers = line.partition(": ")
        call, *times = numbers.split()
        table[name] = (float(call), {dtype: float(time) for dtype, _, time in (pair.partition("=") for pair in times)})
    return table


TIMES: Final[Mapping[str, tuple[float, Mapping[str, float]]]] = _read()
