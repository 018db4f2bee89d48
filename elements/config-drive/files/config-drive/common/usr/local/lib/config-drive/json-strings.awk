# Prints every string, number and word of a JSON document as "path<TAB>value", where
# the path is the member names joined by dots ("public_keys.laptop"). A value
# of several lines gives several lines. Exits 1 when the brackets do not
# match. For images that have neither jq nor a full Python; mawk, gawk, busybox.

{ text = text $0 "\n" }

END {
  n = length(text); depth = 0; bad = 0
  for (i = 1; i <= n && !bad; i++) {
    c = substr(text, i, 1)
    if (c == "\"") {
      s = string_at()
      if (kind[depth] == "{" && expect_name[depth]) name[depth] = s
      else emit(s)
    } else if (c == "{" || c == "[") {
      depth++
      kind[depth] = c; expect_name[depth] = (c == "{"); name[depth] = ""
    } else if (c == "}" || c == "]") {
      if (depth == 0 || kind[depth] != (c == "}" ? "{" : "[")) bad = 1
      else depth--
    } else if (c == ":") expect_name[depth] = 0
    else if (c == ",") expect_name[depth] = (kind[depth] == "{")
    else if (c ~ /[-+.0-9A-Za-z]/) emit(word_at())
  }
  exit bad || depth != 0 || n < 3
}

# string_at reads the string whose opening quote is at i, and leaves i at its closing one.
function string_at(    s, c) {
  s = ""
  for (i++; i <= n; i++) {
    c = substr(text, i, 1)
    if (c == "\"") return s
    if (c == "\\") {
      i++; c = substr(text, i, 1)
      if (c == "n") c = "\n"
      else if (c == "t") c = "\t"
      else if (c ~ /[bfr]/) c = " "
      else if (c == "u") { i += 4; c = "?" } # none of what we use has one
    }
    s = s c
  }
  bad = 1
  return s
}

# word_at reads the number, true, false or null at i, and leaves i at its last character.
function word_at(    s) {
  s = ""
  while (i <= n && substr(text, i, 1) ~ /[-+.0-9A-Za-z]/) { s = s substr(text, i, 1); i++ }
  i--
  return s
}

function emit(value,    path, d, lines, count, k) {
  path = name[1]
  for (d = 2; d <= depth; d++) if (name[d] != "") path = path "." name[d]
  count = split(value, lines, "\n")
  for (k = 1; k <= count; k++) if (lines[k] != "") print path "\t" lines[k]
}
