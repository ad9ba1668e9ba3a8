/* The version of the library. */
#include <dogwood/dogwood.h>

const char *dogwood_version(void)
{
	return DOGWOOD_VERSION_TEXT;
}
