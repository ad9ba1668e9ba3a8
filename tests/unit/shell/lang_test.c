/* The language, by command lines and what they print. Expected texts are what bash 5.2 prints,
 * POSIX where they agree with dash. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "harness.h"
#include "base/ban.h"

struct row {
	const char *text, *out;
	int status;
};

static void run_rows(const struct row *r, size_t n)
{
	struct sh_test t;

	sh_test_init(&t);
	for (size_t i = 0; i < n; i++)
		sh_test_expect(&t, r[i].text, r[i].out, r[i].status);
	sh_test_fini(&t);
}
#define ROWS(r) run_rows(r, sizeof(r) / sizeof((r)[0]))

static void words_and_quoting(void **state)
{
	static const struct row r[] = {
		{ "echo a#b 'c d' \"e  f\" g\\ h", "a#b c d e  f g h\n", 0 },
		{ "set -- \"\" ''; echo $#", "2\n", 0 },
		{ "[ -n \"$UNSET\" ]; echo $?", "1\n", 0 },
		{ "echo 1 > f; cat f", "1\n", 0 },
		{ "a=1 b=$a; echo $b", "1\n", 0 },
		{ "set 1 2 3 4 5 6 7 8 9 ten; echo ${10} $10", "ten 10\n", 0 },
		{ "x='a*b'; echo ${x%'*b'} ${x#a'*'}", "a b\n", 0 },
		{ "echo $'a\\tb\\x41\\101\\u00e9'", "a\tbAA\u00e9\n", 0 },
		{ "echo \"a\\$b\\`c\\\"d\\e\"", "a$b`c\"d\\e\n", 0 },
		{ "echo a\\\nb", "ab\n", 0 },
		{ "echo {a,b{1,2}}x {1..3} {c..a} {01..3}", "ax b1x b2x 1 2 3 c b a 01 02 03\n",
		    0 },
		{ "HOME=/h; echo ~ ~/y a~ x=~; z=a:~; echo $z", "/h /h/y a~ x=/h\na:/h\n", 0 },
	};

	(void)state;
	ROWS(r);
}

static void splitting(void **state)
{
	static const struct row r[] = {
		{ "x=' a  b '; set -- $x; echo $# \"$1\" \"$2\"", "2 a b\n", 0 },
		{ "IFS=:; x=a::b:; set -- $x; echo $# \"[$2]\"", "3 []\n", 0 },
		{ "IFS=' :'; x='a : b'; set -- $x; echo $#", "2\n", 0 },
		{ "set -- a 'b c'; for i in \"$@\"; do echo \"<$i>\"; done", "<a>\n<b c>\n", 0 },
		{ "set -- a b; IFS=-; echo \"$*\" $*", "a-b a b\n", 0 },
		{ "set --; set -- \"$@\" x\"$@\"y; echo $# $1", "1 xy\n", 0 },
		{ "x=; set -- $x \"$x\"; echo $#", "1\n", 0 },
		{ "set -- ${u-a b} \"${u-c d}\"; echo $#", "3\n", 0 },
		{ "IFS=; x='a b'; set -- $x; echo $#", "1\n", 0 },
	};

	(void)state;
	ROWS(r);
}

static void parameters(void **state)
{
	static const struct row r[] = {
		{ "x=path/to/file.tar.gz; echo ${x##*/} ${x#*/} ${x%.*} ${x%%.*}",
		    "file.tar.gz to/file.tar.gz path/to/file.tar path/to/file\n", 0 },
		{ "echo ${u:-d} ${u:=e} $u ${u:+f} ${#u}", "d e e f 1\n", 0 },
		{ "x=hello; echo ${x/l/L} ${x//l/L} ${x/#he/J} ${x/%lo/p} ${x:1:3} ${x: -2}",
		    "heLlo heLLo Jllo help ell lo\n", 0 },
		{ "x=hello; echo ${x^} ${x^^} ${x^^[el]}", "Hello HELLO hELLo\n", 0 },
		{ "y=x; x=5; echo ${!y}", "5\n", 0 },
		{ "echo ${u?gone}; echo no", "", 127 },
		{ "x=\u00e9t\u00e9; echo ${#x} ${x:1:1}", "3 t\n", 0 },
		{ "a=(1 2 3); a+=(4); a[7]=8; echo ${a[@]} ${#a[@]} ${!a[@]} ${a[-1]}",
		    "1 2 3 4 8 5 0 1 2 3 7 8\n", 0 },
		{ "declare -A m=([k]=v [x y]=z); echo ${m[k]} \"${m[x y]}\" ${#m[@]}", "v z 2\n",
		    0 },
		{ "a=(x 'y z'); for i in \"${a[@]}\"; do echo \"$i\"; done", "x\ny z\n", 0 },
		{ "x='a b'; echo ${x@Q}", "'a b'\n", 0 },
		{ "unset x; echo \"${x[@]+set}\"; x=(); echo ${#x[@]}", "\n0\n", 0 },
	};

	(void)state;
	ROWS(r);
}

static void arithmetic(void **state)
{
	static const struct row r[] = {
		{ "echo $((1+2*3)) $((7/2)) $((-7%3)) $((2**10)) $((1<<4|1))", "7 3 -1 1024 17\n",
		    0 },
		{ "x=5; echo $((x++)) $x $((++x)) $((x-=2)) $((x==5?10:20))", "5 6 7 5 10\n", 0 },
		{ "echo $((0x1f)) $((010)) $((2#101)) $((36#z))", "31 8 5 35\n", 0 },
		{ "echo $((0 && 1 || 1)) $((1 || (y=9))) ${y-unset}", "1 1 unset\n", 0 },
		{ "echo $((1/0)); echo no", "", 1 },
		{ "((3>2)) && echo yes; ((0)) || echo no; let x=4+4; echo $x", "yes\nno\n8\n", 0 },
		{ "for ((i=0;i<3;i++)); do printf $i; done; echo", "012\n", 0 },
		{ "a=(5 6); echo $((a[1]+a[0])) $(( (1+2)*3 ))", "11 9\n", 0 },
		{ "echo $((9223372036854775807+1))", "-9223372036854775808\n", 0 },
		{ "x=x; echo $((x)); echo next", "", 1 },
	};

	(void)state;
	ROWS(r);
}

static void control(void **state)
{
	static const struct row r[] = {
		{ "if false; then echo a; elif true; then echo b; else echo c; fi", "b\n", 0 },
		{ "for i in 1 2 3 4; do [ $i = 2 ] && continue; [ $i = 4 ] && break; echo $i; done",
		    "1\n3\n", 0 },
		{ "i=0; while [ $i -lt 3 ]; do i=$((i+1)); done; until false; do break; done; echo "
		  "$i",
		    "3\n", 0 },
		{ "case a.c in *.h) echo h;; *.[ch]) echo c;& z) echo fall;; *) echo no;; esac",
		    "c\nfall\n", 0 },
		{ "f() { echo $# $1; return 3; }; f a b; echo $?", "2 a\n3\n", 0 },
		{ "f() { local x=2; x=3; }; x=1; f; echo $x", "1\n", 0 },
		{ "! true; echo $?; ! (false); echo $?", "1\n0\n", 0 },
		{ "{ echo a; exit 3; echo b; }; echo c", "a\n", 3 },
		{ "(exit 4); echo $?; false || (exit 5); echo $?", "4\n5\n", 0 },
		{ "for i in 1 2; do for j in a b; do break 2; done; done; echo $i$j", "1a\n", 0 },
		{ "[[ abc == a* && abc =~ ^a(b)c$ ]] && echo ${BASH_REMATCH[1]}", "b\n", 0 },
		{ "[[ -z '' ]] && [[ 10 -gt 9 ]] && [[ a < b ]] && echo ok", "ok\n", 0 },
		{ "true && false || echo x; echo $(false; echo $?)", "x\n1\n", 0 },
		{ "if", "", 2 },
		{ "echo a; fi", "", 2 },
	};

	(void)state;
	ROWS(r);
}

static void options(void **state)
{
	static const struct row r[] = {
		{ "set -e; false; echo no", "", 1 },
		{ "set -e; false || true; if false; then :; fi; ! true; echo yes", "yes\n", 0 },
		{ "set -e; f() { false; echo in; }; f || echo out; echo end", "in\nend\n", 0 },
		{ "set -euo pipefail; echo ok; false | true; echo no", "ok\n", 1 },
		{ "set -u; echo $nope; echo no", "", 127 },
		{ "set -o pipefail; false | true; echo $?; echo ${PIPESTATUS[@]}", "1\n0\n", 0 },
		{ "false | true | false; echo ${PIPESTATUS[*]}", "1 0 1\n", 0 },
		{ "set -f; echo *; set +f; set -C; echo a > n; echo b > n; echo $?; cat n",
		    "*\n1\na\n", 0 },
		{ "set -x; x=1; echo $x", "1\n", 0 },
		{ "trap 'echo bye' EXIT; echo hi; exit 3", "hi\nbye\n", 3 },
		{ "trap 'echo got' USR1; kill -USR1 $$; echo after", "got\nafter\n", 0 },
		{ "set -e; trap 'echo err' ERR; false; echo no", "err\n", 1 },
		{ "(trap 'echo sub' EXIT; true); echo main", "sub\nmain\n", 0 },
	};

	(void)state;
	ROWS(r);
}

static void redirections(void **state)
{
	static const struct row r[] = {
		{ "echo a > f; echo b >> f; cat < f", "a\nb\n", 0 },
		{ "{ echo out; echo err >&2; } > o 2>&1; cat o", "out\nerr\n", 0 },
		{ "{ echo out; echo err >&2; } 2>/dev/null", "out\n", 0 },
		{ "cat <<EOF\na $((1+1))\n\\$x\nEOF\necho next", "a 2\n$x\nnext\n", 0 },
		{ "cat <<'EOF'\n$x `y`\nEOF", "$x `y`\n", 0 },
		{ "cat <<-EOF\n\t\ta\n\tEOF", "a\n", 0 },
		{ "cat <<A; cat <<B\na\nA\nb\nB", "a\nb\n", 0 },
		{ "echo \"$(cat <<'EOF'\nit's (here\nEOF\n)\"", "it's (here\n", 0 },
		/* A body that never comes is empty; one that was looked for in vain as part of an
		 * arithmetic expansion is read once. */
		{ "cat <<E\n$(cat <<F)\nE\necho after", "\nafter\n", 0 },
		{ "f() { cat <<E\n$(cat <<F)\nE\n}; declare -f f; f",
		    "f () \n{ \n    cat <<E\n$(cat <<F\nF\n)\nE\n}\n\n", 0 },
		{ "cat <<A; echo $(( cat <<E\naa\nA\nab\nE\n) ; echo x)\necho after",
		    "aa\nab x\nafter\n", 0 },
		{ "cat <<< \"a  b\"", "a  b\n", 0 },
		{ "exec 3> f; echo x >&3; exec 3>&-; cat f; echo y >&3; echo $?", "x\n1\n", 0 },
		{ "while read -r a b; do echo \"$b-$a\"; done <<E\n1 2 3\n\\x y\nE",
		    "2 3-1\ny-\\x\n", 0 },
		{ "echo a > missing/f; echo $?", "1\n", 0 },
		{ "exec {fd}> g; echo z >&$fd; cat g; echo $((fd >= 10))", "z\n1\n", 0 },
		{ "echo hi &> both; cat both; cat < nothing; echo $?", "hi\n1\n", 0 },
		{ "cat <(echo p) <(echo q)", "p\nq\n", 0 },
		{ "echo 1 2>f; cat f; > empty; cat empty", "1\n", 0 },
	};

	(void)state;
	ROWS(r);
}

static void pipelines(void **state)
{
	static const struct row r[] = {
		{ "echo b a | tr ' ' '\\n' | sort | head -1", "a\n", 0 },
		{ "echo x | { read v; echo got $v; }", "got x\n", 0 },
		{ "echo in | echo $(cat)", "in\n", 0 },
		{ "yes | head -2", "y\ny\n", 0 },
		{ "while :; do echo y; done | head -1", "y\n", 0 },
		{ "for i in 3 1 2; do echo $i; done | sort | while read x; do printf \"$x \"; "
		  "done; echo",
		    "1 2 3 \n", 0 },
		{ "echo a | nosuchcommand | cat; echo $?", "0\n", 0 },
		{ "x=1; echo | x=2; echo $x", "1\n", 0 },
		{ "echo err 2>&1 >/dev/null | cat; { echo e >&2; } |& cat", "e\n", 0 },
		{ "sleep 0.05 & p=$!; wait $p; echo $?; (exit 7) & wait $!; echo $?", "0\n7\n", 0 },
		{ "sleep 5 & kill $!; wait $!; echo $?", "143\n", 0 },
		/* However young the child is, it has no handler of its parent's. */
		{ "for i in {1..100}; do sleep 5 & kill $!; wait $!; [ $? = 143 ] || echo lost; "
		  "done",
		    "", 0 },
	};

	(void)state;
	ROWS(r);
}

static void builtins(void **state)
{
	static const struct row r[] = {
		{ "printf '%s-%d-%x-%5.2f|%-4s|%q\\n' a 12 255 3.14159 z \"it's\"",
		    "a-12-ff- 3.14|z   |it\\'s\n", 0 },
		{ "printf '%s %s\\n' a b c", "a b\nc \n", 0 },
		{ "echo -n x; echo -e 'a\\tb'; echo -E 'a\\tb'", "xa\tb\na\\tb\n", 0 },
		{ "mkdir -p d/e; cd d/e; cd ..; echo ${PWD##*/}; cd - > /dev/null; echo ${PWD##*/}",
		    "d\ne\n", 0 },
		{ "while getopts ab: o -a -bx -b y; do echo $o $OPTARG; done", "a\nb x\nb y\n", 0 },
		{ "set -- a b c; shift 2; echo $1 $#; shift 5; echo $?", "c 1\n1\n", 0 },
		{ "eval 'x=1; echo $x'; eval 'exit 3'; echo no", "1\n", 3 },
		{ "echo 'y=2; return 4; y=3' > s; . ./s; echo $? $y", "4 2\n", 0 },
		{ "alias ll='echo alias'\nll x\nunalias ll", "alias x\n", 0 },
		{ "readonly r=1; r=2; echo no", "", 1 },
		{ "export E=1; sh -c 'echo $E $0 $1' zero one", "1 zero one\n", 0 },
		{ "X=9 sh -c 'echo $X'; echo ${X-unset}", "9\nunset\n", 0 },
		{ "command -v cd; type -t ls if cd; type nosuch; echo $?",
		    "cd\nfile\nkeyword\nbuiltin\n1\n", 0 },
		{ "umask 027; umask; touch t; stat -c %a t", "0027\n640\n", 0 },
		{ "IFS=: read a b <<< 1:2:3; echo $a $b", "1 2:3\n", 0 },
		{ "printf 'a\\0b\\0' | { mapfile -d '' v; echo ${#v[@]} ${v[1]}; }", "2 b\n", 0 },
		{ "f() { echo $FUNCNAME; }; f; unset -f f; f; echo $?", "f\n127\n", 0 },
		{ "nosuch 2>/dev/null; nosuch > e 2>&1; cat e",
		    "strands-shell: nosuch: command not found\n", 0 },
		{ "mkdir -p p/q; pushd p/q > /dev/null; popd > /dev/null; dirs -p | wc -l", "1\n",
		    0 },
		{ "f() { echo ${FUNCNAME[@]}; g; }; g() { echo ${FUNCNAME[@]}; }; f; echo "
		  "${FUNCNAME-none}",
		    "f\ng f\nnone\n", 0 },
		{ "declare -n r=a[1]; a=(x y); r=z; echo ${a[1]} $r", "z z\n", 0 },
		{ "shopt -s lastpipe; echo v | read x; echo $x", "v\n", 0 },
		{ "set -e; trap 'echo at $BASH_COMMAND' EXIT; false", "at false\n", 1 },
		{ "echo x > >(cat > t); cat t", "x\n", 0 },
		{ "x1=a x2=b; echo $x{1,2}", "a b\n", 0 },
		{ "echo 'echo $0 $1' > s; chmod +x s; ./s arg", "./s arg\n", 0 },
		{ "printf '#!/bin/bash\\necho run\\n' > s; chmod +x s; ./s", "run\n", 0 },
		{ "test 1 -eq 1 -a a = a; echo $?; [ a = b -o x ]; echo $?; [ 1 -eq x ]; echo $?",
		    "0\n0\n2\n", 0 },
		{ "echo 'echo in' | sh; echo 'read x; echo $x\nline' | sh", "in\nline\n", 0 },
	};

	(void)state;
	ROWS(r);
}

static void globbing(void **state)
{
	static const struct row r[] = {
		{ "mkdir g; cd g; touch a.c b.c .h c.h; echo *.c; echo *; echo .h*; echo [ab].? "
		  "no*",
		    "a.c b.c\na.c b.c c.h\n.h\na.c b.c no*\n", 0 },
		{ "mkdir -p x/y; touch x/y/f x/g; echo x/*/f x/*; cd x; echo */",
		    "x/y/f x/g x/y\ny/\n", 0 },
		{ "touch 'a b' '*'; for i in a*; do echo \"$i\"; done; echo '*' \\* \"*\"",
		    "a b\n* * *\n", 0 },
		{ "shopt -s nullglob; echo zz*; shopt -s extglob\necho @(a|c)*.[ch]", "\n\n", 0 },
		{ "mkdir -p s/t; touch s/t/u; shopt -s globstar; echo s/**", "s/ s/t s/t/u\n", 0 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(r) / sizeof(r[0]); i++)
		run_rows(&r[i], 1);
}

/* What fuzzing found: crashes, overflows, and time or stack without a limit. */
static void hostile(void **state)
{
	static const struct row r[] = {
		{ "x=1; declare -n r=x; sh -c 'echo \"${x-unset} ${r-unset}\"'", "unset unset\n",
		    0 },
		{ "export a=(1) b=2 c=3 d=4 e=5 f=6 g=7; echo $a $b $g", "1 2 7\n", 0 },
		{ "export a=(1) b=2 c=3 d=4 e=5 f=6 g=7 h=(8) i=9; echo $a $b $g $h $i",
		    "1 2 7 8 9\n", 0 },
		{ "x=abc; echo ${x:1:9223372036854775807} ${x: -2:9223372036854775807}", "bc bc\n",
		    0 },
		{ "a[9223372036854775807]=x; echo ${a[-1]} ${a[@]: -1} $((a[-1] + 1)); unset "
		  "'a[-1]'; "
		  "echo ${#a[@]}",
		    "x x 1\n0\n", 0 },
		{ "a=([9223372036854775807]=x y); echo no", "", 1 },
		{ "a=(1 2 3); a+=([-1]=z y); echo ${a[@]}", "1 2 z y\n", 0 },
		{ "x=x=1,2; declare -i x; x+=1; echo $x", "3\n", 0 },
		{ "declare -ai a; a[3]='a[0]=1'; echo ${!a[@]} ${a[@]}; a[3]='a[1]=7'; echo "
		  "${a[@]}",
		    "0 3 1 1\n1 7 7\n", 0 },
		{ "declare -i x; x='x[5]=2'; declare -p x", "declare -ai x=([0]=\"2\" [5]=\"2\")\n",
		    0 },
		{ "``; echo $?", "0\n", 0 },
		{ "x='${x@P}'; echo ${x@P}; echo no", "", 127 },
		{ "f() { { { { { f; }; }; }; }; }; f; echo no", "", 127 },
		{ "{ printf 'for i in '; printf '%0400000d' 0 | tr 0 '{'; echo '; do echo ${#i}; "
		  "done'; } > s; . ./s",
		    "400000\n", 0 },
		{ "{ printf 'for i in {'; printf '%0400000d' 0 | tr 0 ,; echo '}; do :; done'; } > "
		  "s; "
		  ". ./s; echo $?",
		    "1\n", 0 },
		{ "echo {000000000000000000000000000000000001..2}",
		    "000000000000000000000000000000000001 000000000000000000000000000000000002\n",
		    0 },
		{ "read -t nan x <<< a; echo $?", "1\n", 0 },
		{ "x=$(printf '%0400000d' 0); x=${x//0/\u00e9}$'\\xff'; printf -v y %q \"$x\" || "
		  "y=${x@K}; y=${x@K}; echo ${#y}",
		    "3200007\n", 0 },
		{ "x=$(printf '%040000d' 0); x=${x//0/a\\/}; for i in $x*; do echo ${#i}; done",
		    "80001\n", 0 },
		{ "date -d '@0 - -9223372036854775808 day' 2>/dev/null || date -d '- "
		  "-9223372036854775808 day'",
		    "", 1 },
		{ "date -d '100000000 years 100000000 years'", "", 1 },
	};

	(void)state;
	ROWS(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(words_and_quoting),
		cmocka_unit_test(splitting),
		cmocka_unit_test(parameters),
		cmocka_unit_test(arithmetic),
		cmocka_unit_test(control),
		cmocka_unit_test(options),
		cmocka_unit_test(redirections),
		cmocka_unit_test(pipelines),
		cmocka_unit_test(builtins),
		cmocka_unit_test(globbing),
		cmocka_unit_test(hostile),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
