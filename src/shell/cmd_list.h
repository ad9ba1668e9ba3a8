/* Every command that runs inside the shell, one line each; included with SH_CMD defined
 * (cmd_table.c). SH_CMD(x) names the object sh_cmd_x. */
