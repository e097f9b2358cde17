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
0|23:24|this looks ahead: it reads keys after its position, which no mask excludes
1|24:28|this looks ahead: it reads all positions
2|25:24|this looks ahead: it reads rows after its position
3|26:24|this looks ahead: it reads positions from the last one on
4|27:28|this cannot be computed token by token: it is not known what it reads of earlier positions
5|28:29|this looks ahead: it reads rows after its position
6|29:28|this cannot be computed token by token: it is not known what it reads of earlier positions
7|30:39|this looks ahead: it reads keys after its position, which no mask excludes
8|31:28|this looks ahead: it reads all positions
9|32:28|this looks ahead: it reads rows after its position
10|33:29|this cannot be computed token by token: it is not known what it reads of earlier positions
11|35:29|this cannot be computed token by token: it is not known what it reads of earlier positions
12|36:43|this cannot be computed token by token: it draws random numbers
13|37:25|this looks ahead: it reads a value of the last position
14|38:33|this looks ahead: it reads all positions
15|39:25|this looks ahead: it reads keys after its position, which no mask excludes
16|40:25|this looks ahead: it reads positions after its own: no mask makes their factors 0
17|41:25|this cannot be computed token by token: its stride is not 1
18|42:29|this cannot be computed token by token: it selects some of the positions
20|43:25|this cannot be computed token by token: it contains a number that depends on the number of tokens
21|44:29|this looks ahead: it reads keys after its position
22|45:29|this looks ahead: it reads keys after its position
23|46:29|this cannot be computed token by token: it contains a number that depends
24|47:102|this looks ahead: it reads positions after its own
25|6:10|this looks ahead: it reads keys after its position
26|50:45|this looks ahead: it reads keys after its position
27|51:25|this looks ahead: it reads keys after its position
28|52:56|this cannot be computed token by token: it contains a number that depends
29|53:30|this cannot be computed token by token: it contains a number that depends
30|54:25|this cannot be computed token by token: its positions share an axis
31|55:39|this cannot be computed token by token: it contains a number that depends
32|57:25|this looks ahead: it reads keys after its position, which no mask excludes
33|58:25|this looks ahead: it reads positions after its own: no mask makes their factors 0
34|59:25|this looks ahead: it reads keys after its position, which no mask excludes
35|60:48|this looks ahead: it reads keys after its position, which no mask excludes
36|61:91|this looks ahead: it reads positions after its own: no mask makes their factors 0
37|62:25|this looks ahead: it reads positions after its own: no mask makes their factors 0
38|63:25|this looks ahead: it reads keys after its position, which no mask excludes
39|64:25|this looks ahead: it reads keys after its position, which no mask excludes
40|65:25|this looks ahead: it reads keys after its position, which no mask excludes
41|66:25|this looks ahead: it reads keys after its position, which no mask excludes
42|67:60|this cannot be computed token by token: it contains a number that depends on the number of tokens
43|68:48|this looks ahead: it reads positions after its own: no mask makes their factors 0
44|69:25|this cannot be computed token by token: it joins positions
45|70:25|this cannot be computed token by token: it is not known what it reads of earlier positions
46|71:25|this cannot be computed token by token: it divides by the number of rows
47|72:29|this cannot be computed token by token: it returns places among all positions
48|73:25|this looks ahead: it reads keys after its position
49|74:25|this looks ahead: it reads keys after its position
50|75:25|this looks ahead: it reads keys after its position
51|76:25|this looks ahead: it reads keys after its position
52|77:25|this looks ahead: it reads keys after its position
53|78:33|this cannot be computed token by token: it is not known what it reads of earlier positions
54|79:25|this looks ahead: it reads keys after its position, which no mask excludes
55|80:25|this looks ahead: it reads keys after its position, which no mask excludes
56|82:25|this cannot be computed token by token: it is not known what it reads of earlier positions
57|83:25|this cannot be computed token by token: it is not known what it reads of earlier positions
58|84:25|this looks ahead: it reads keys after its position
59|85:25|this looks ahead: it reads keys after its position
60|86:45|this looks ahead: it reads all pairs of positions
61|87:45|this looks ahead: it reads all pairs of positions
END
"$ampc" --target=cpu --decode next -D PART=19 --dump-after=decode "$here/ahead.amp" >/dev/null || failed=1 # a norm of channels
exit $failed
