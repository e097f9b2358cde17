#!/usr/bin/env bash
# Jobs that read later tokens, or what no step can continue, are refused: E614 with the place. Each part of ahead.amp is one.
#   refused.sh AMPC
set -u
ampc=$1 failed=0
here=$(dirname "$0")
while IFS='|' read -r part place message; do
  told=$("$ampc" --target=cpu --decode next -D PART="$part" --dump-after=decode "$here/ahead.amp" 2>&1 >/dev/null)
  case $told in
    *"ahead.amp:$place: error[E614]: $message"*"help: "*) [ "$(grep -c 'error\[' <<<"$told")" = 1 ] && continue ;;
  esac
  echo "FAIL part $part: expected $place: $message"
  echo "$told"
  failed=1
done <<'END'
0|18:24|this looks ahead: it reads keys after its position, which no mask excludes
1|19:28|this looks ahead: it reads all positions
2|20:24|this looks ahead: it reads rows after its position
3|21:24|this looks ahead: it reads positions from the last one on
4|22:28|this cannot be computed token by token: it is not known what it reads of earlier positions
5|23:29|this looks ahead: it reads rows after its position
6|24:28|this cannot be computed token by token: it is not known what it reads of earlier positions
7|25:39|this looks ahead: it reads keys after its position, which no mask excludes
8|26:28|this looks ahead: it reads all positions
9|27:28|this cannot be computed token by token: it is not known what it reads of earlier positions
10|28:29|this cannot be computed token by token: it is not known what it reads of earlier positions
11|30:29|this cannot be computed token by token: it is not known what it reads of earlier positions
12|31:43|this cannot be computed token by token: it draws random numbers
13|32:25|this looks ahead: it reads a value of the last position
14|33:33|this looks ahead: it reads all positions
15|34:25|this looks ahead: it reads keys after its position, which no mask excludes
16|35:25|this looks ahead: it reads positions after its own: no mask makes their factors 0
17|36:25|this cannot be computed token by token: its stride is not 1
18|37:29|this cannot be computed token by token: it selects some of the positions
20|38:25|this cannot be computed token by token: it contains a number that depends on the number of tokens
21|39:29|this looks ahead: it reads keys after its position
22|40:29|this looks ahead: it reads keys after its position
23|41:29|this cannot be computed token by token: it contains a number that depends
24|42:102|this looks ahead: it reads positions after its own
25|6:10|this looks ahead: it reads keys after its position
END
"$ampc" --target=cpu --decode next -D PART=19 --dump-after=decode "$here/ahead.amp" >/dev/null || failed=1 # a norm of channels
exit $failed
