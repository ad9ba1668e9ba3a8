/* Functions nobody may call. Include last, after every system header: poisoning a name
 * before <string.h> declares it would break the declaration itself. */
#pragma once
#pragma GCC poison strcpy strcat sprintf vsprintf gets strtok
