/* The plan's own small functions. See plan.h. */
#include "config/plan.h"

#include "base/ban.h"

const char *const plan_list_name[PLAN_LISTS] = {
	[PLAN_READ] = "read",
	[PLAN_WRITE] = "write",
	[PLAN_READ_FILE] = "read_file",
	[PLAN_WRITE_FILE] = "write_file",
	[PLAN_LIST] = "list",
	[PLAN_METADATA] = "metadata",
	[PLAN_EXEC] = "exec",
	[PLAN_DENY] = "deny",
};

void plan_fini(struct plan *p)
{
	struct arena a = p->arena;

	arena_free(&a);
	*p = (struct plan){ .arena.limit = a.limit };
}

sv plan_env(const struct plan_process *proc, sv name)
{
	for (size_t i = 0; i < proc->env_n; i++)
		if (sv_eq(proc->env[i].name, name))
			return proc->env[i].value;
	return (sv){ NULL, 0 };
}
