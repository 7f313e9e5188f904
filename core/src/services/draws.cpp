#include "draws.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "rows.h"

namespace hwsim::services {

namespace {

constexpr double HALF_ROOT = 0.7071067811865476;
constexpr double LN2_HIGH = 0.6931471803691238;  // its last 20 bits are 0, so that a whole multiple is exact
constexpr double LN2_LOW = 1.9082149292705877e-10;
constexpr double PER_LN2 = 1.4426950408889634;

constexpr double LOG_TERMS[] = {
    0.043478260869565216, 0.047619047619047616, 0.05263157894736842, 0.058823529411764705, 0.06666666666666667,
    0.07692307692307693, 0.09090909090909091, 0.1111111111111111, 0.14285714285714285, 0.2, 0.3333333333333333, 1.0};
constexpr double EXP_TERMS[] = {
    1.1470745597729725e-11, 1.6059043836821613e-10, 2.08767569878681e-09, 2.505210838544172e-08, 2.755731922398589e-07,
    2.7557319223985893e-06, 2.48015873015873e-05, 0.0001984126984126984, 0.001388888888888889, 0.008333333333333333,
    0.041666666666666664, 0.16666666666666666, 0.5, 1.0, 1.0};
constexpr double MIDDLE[] = {
    2509.0809287301227, 33430.57558358813, 67265.7709270087, 45921.95393154987, 13731.69376550946, 1971.5909503065513,
    133.14166789178438, 3.3871328727963665};
constexpr double BELOW_MIDDLE[] = {
    5226.495278852546, 28729.085735721943, 39307.89580009271, 21213.794301586597, 5394.196021424751, 687.1870074920579,
    42.31333070160091, 1.0};
constexpr double SIDES[] = {
    0.0007745450142783414, 0.022723844989269184, 0.2417807251774506, 1.2704582524523684, 3.6478483247632045, 5.769497221460691,
    4.630337846156546, 1.4234371107496835};
constexpr double BELOW_SIDES[] = {
    1.0507500716444169e-09, 0.0005475938084995345, 0.015198666563616457, 0.14810397642748008, 0.6897673349851,
    1.6763848301838038, 2.053191626637759, 1.0};
constexpr double TAILS[] = {
    2.0103343992922881e-07, 2.7115555687434876e-05, 0.0012426609473880784, 0.026532189526576124, 0.29656057182850487,
    1.7848265399172913, 5.463784911164114, 6.657904643501103};
constexpr double BELOW_TAILS[] = {
    2.0442631033899397e-15, 1.421511758316446e-07, 1.8463183175100548e-05, 0.0007868691311456133, 0.014875361290850615,
    0.1369298809227358, 0.599832206555888, 1.0};

// Horner's scheme, the highest power first.
template <size_t Terms>
double polynomial(const double (&factors)[Terms], double number) {
  double found = factors[0];
  for (size_t at = 1; at < Terms; ++at) found = found * number + factors[at];
  return found;
}

double log(double number) {
  int power = 0;
  double part = std::frexp(number, &power);
  const double low = part < HALF_ROOT ? 1.0 : 0.0;
  part = part * (1.0 + low);
  const double exponent = static_cast<double>(power) - low;
  const double ratio = (part - 1.0) / (part + 1.0);
  return 2.0 * ratio * polynomial(LOG_TERMS, ratio * ratio) + exponent * LN2_LOW + exponent * LN2_HIGH;
}

double exp(double number) {
  const double turns = std::floor(number * PER_LN2 + 0.5);
  const double rest = (number - turns * LN2_HIGH) - turns * LN2_LOW;
  return std::ldexp(polynomial(EXP_TERMS, rest), static_cast<int>(turns));
}

// The number that this share of a standard normal distribution is below.
double normal(double share) {
  const double middle = share - 0.5;
  if (std::fabs(middle) <= 0.425) {
    const double near = 0.180625 - middle * middle;
    return middle * (polynomial(MIDDLE, near) / polynomial(BELOW_MIDDLE, near));
  }
  const double root = std::sqrt(-log(std::min(share, 1.0 - share)));
  const double far = root <= 5.0 ? polynomial(SIDES, root - 1.6) / polynomial(BELOW_SIDES, root - 1.6)
                                 : polynomial(TAILS, root - 5.0) / polynomial(BELOW_TAILS, root - 5.0);
  return middle < 0 ? -far : far;
}

}  // namespace

uint64_t mixed(uint64_t state, uint64_t number) {
  state = (state ^ number) + 0x9E3779B97F4A7C15;
  state = (state ^ (state >> 30)) * 0xBF58476D1CE4E5B9;
  state = (state ^ (state >> 27)) * 0x94D049BB133111EB;
  return state ^ (state >> 31);
}

double uniform(uint64_t key, uint64_t request, uint64_t visit) {
  const uint64_t word = mixed(mixed(key, request), visit);
  return (static_cast<double>(word >> 12) + 0.5) * 0x1p-52;
}

double drawn(const int64_t* row, const double* floats, int64_t request, int64_t visit) {
  using namespace table;
  const double* parameters = floats + row[PARAMETERS] * FLOATS_WIDTH;
  const double first = parameters[0], second = parameters[1], cut = parameters[3];
  const double share = uniform(static_cast<uint64_t>(row[KEY]), static_cast<uint64_t>(request), static_cast<uint64_t>(visit));
  switch (row[CODE]) {
    case EXPONENTIAL:
      return -first * log(1.0 - share);
    case LOGNORMAL:
      return first * exp(second * normal(share));
    case UNIFORM:
      return first + (second - first) * share;
    case PARETO:
      return second * exp(log(1.0 - share * (1.0 - cut)) * (-1.0 / first));
    case VALUES:
      return floats[(row[FIRST_VALUE] + static_cast<int64_t>(share * first)) * FLOATS_WIDTH];
    case WHOLE:
      return std::min(std::floor(share * (second - first + 1.0)) + first, second);
    default:
      return first;
  }
}

}  // namespace hwsim::services
