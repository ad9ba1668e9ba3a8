/* See box_schema.h. */
#include "dogwood/box_schema.h"

#include "base/ban.h"

#define APPLIES                                                                                    \
	"appliesTo {\n      principal: [Agent],\n      resource: [Resource],\n      context: "
#define FS(op)                                                                                     \
	"{ input: { path: String, operation: " op                                                  \
	" }, output?: { result: FsResponseResult } }\n    };\n"
#define COMMAND                                                                                    \
	"command: String, program: String, arg1?: String, arg2?: String, arg_count: Long, cwd: "   \
	"String"

const char dw_box_actions[] =
    "namespace Box {\n"
    "  entity Agent;\n"
    "  entity Resource;\n"
    "  entity FsReadOperation enum [\"read_content\", \"read_metadata\", \"enumerate\", "
    "\"read_link\", \"change_dir\", "
    "\"exec\"];\n"
    "  entity FsWriteOperation enum [\"write_content\", \"create_dir\", \"set_permissions\", "
    "\"symlink\"];\n"
    "  entity FsDeleteOperation enum [\"remove_file\", \"remove_dir\"];\n"
    "  entity FsMoveOperation enum [\"rename\"];\n"
    "  entity FsOtherOperation enum [\"other\"];\n"
    "  entity FsResponseResult enum [\"completed\", \"descriptor_issued\", \"indeterminate\"];\n"
    "\n"
    "  action \"fs:read\" " APPLIES FS("FsReadOperation") "  action \"fs:write\" " APPLIES
        FS("FsWriteOperation") "  action \"fs:delete\" " APPLIES FS(
            "FsDeleteOperation") "  action \"fs:move\" " APPLIES
            FS("FsMoveOperation") "  action \"fs:other\" " APPLIES FS(
                "FsOtherOperation") "  action \"net:connect\" " APPLIES
                                    "{ input: { host: String, port: Long, ip?: String } }\n    };\n"
                                    "  action \"http:request\" " APPLIES
                                    "{ input: { host: String, port: Long, method: String, path: "
                                    "String, body_bytes: Long, intercepted: Bool }, "
                                    "output?: { status?: Long } }\n    };\n"
                                    "  action \"shell:exec\" " APPLIES "{ input: { " COMMAND
                                    " }, output?: { status: Long } }\n    };\n"
                                    "  action \"shell:spawn\" " APPLIES "{ input: { " COMMAND
                                    ", program_path: String, credential_reads?: Set<String> }, "
                                    "output?: { status: Long } }\n    };\n"
                                    "  action \"mcp:call\" " APPLIES
                                    "{ input: { server: String, method: String, tool?: String, "
                                    "prompt?: String, uri?: String } }\n    };\n"
                                    "}\n";

#define COMMON                                                                                     \
	"    callerPrincipal: principalType(A),\n    callerResource: resourceType(A),\n    "       \
	"requestId: String,\n}\n"

const char dw_box_events[] = "decision event <A>::request {\n    ...inputs(A),\n" COMMON
                             "event <A>::response {\n    ...inputs(A),\n    ...outputs(A),\n" COMMON
                             "event <A>::error {\n    ...inputs(A),\n" COMMON;
