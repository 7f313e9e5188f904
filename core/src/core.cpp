#include "hwsim_core.h"

int32_t hwsim_core_abi(void) { return HWSIM_CORE_ABI; }
