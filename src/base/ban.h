/* Functions nobody may call. Include last, after every system header: poisoning a name
 * before <string.h> declares it would break the declaration itself. */
#pragma once
/* With _FORTIFY_SOURCE and clang these are macros, which cannot be poisoned as such. */
#undef sprintf
#undef vsprintf
#undef strcpy
#undef strcat
#pragma GCC poison strcpy strcat sprintf vsprintf gets strtok
