# Writes the text of FILE to OUT as the NUL-terminated array NAME; see embed.cmake.
file(READ ${FILE} hex HEX)
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "'\\\\x\\1'," bytes "${hex}")
file(WRITE ${OUT} "extern const char ${NAME}[];\nconst char ${NAME}[] = {${bytes}0};\n")
