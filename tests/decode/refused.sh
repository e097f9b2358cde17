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
0|20:24|this looks ahead: it reads keys after its position, which no mask excludes
1|21:28|this looks ahead: it reads all positions
2|22:24|this looks ahead: it reads rows after its position
3|23:24|this looks ahead: it reads positions from the last one on
4|24:28|this cannot be computed token by token: it is not known what it reads of earlier positions
5|25:29|this looks ahead: it reads rows after its position
6|26:28|this cannot be computed token by token: it is not known what it reads of earlier positions
7|27:39|this looks ahead: it reads keys after its position, which no mask excludes
8|28:28|this looks ahead: it reads all positions
9|29:28|this cannot be computed token by token: it is not known what it reads of earlier positions
10|30:29|this cannot be computed token by token: it is not known what it reads of earlier positions
11|32:29|this cannot be computed token by token: it is not known what it reads of earlier positions
12|33:43|this cannot be computed token by token: it draws random numbers
13|34:25|this looks ahead: it reads a value of the last position
14|35:33|this looks ahead: it reads all positions
15|36:25|this looks ahead: it reads keys after its position, which no mask excludes
16|37:25|this looks ahead: it reads positions after its own: no mask makes their factors 0
17|38:25|this cannot be computed token by token: its stride is not 1
18|39:29|this cannot be computed token by token: it selects some of the positions
20|40:25|this cannot be computed token by token: it contains a number that depends on the number of tokens
21|41:29|this looks ahead: it reads keys after its position
22|42:29|this looks ahead: it reads keys after its position
23|43:29|this cannot be computed token by token: it contains a number that depends
24|44:102|this looks ahead: it reads positions after its own
25|6:10|this looks ahead: it reads keys after its position
26|47:45|this looks ahead: it reads keys after its position
27|48:25|this looks ahead: it reads keys after its position
28|49:56|this cannot be computed token by token: it contains a number that depends
29|50:30|this cannot be computed token by token: it contains a number that depends
30|51:25|this cannot be computed token by token: its positions share an axis
31|52:39|this cannot be computed token by token: it contains a number that depends
END
"$ampc" --target=cpu --decode next -D PART=19 --dump-after=decode "$here/ahead.amp" >/dev/null || failed=1 # a norm of channels
exit $failed
