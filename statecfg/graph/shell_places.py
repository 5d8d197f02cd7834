"""Where a shell reads a quoted word as one word of data: not in double quotes, here-documents, comments or as code."""

from __future__ import annotations

import re

# Patterns, which are compiled when they are first used: most runs need none of them.
# Words before code or a program: the shell runs their next word.
_RUNS = (
    r"(?:^|[\s;&|(`])(?:!|\.|\{|command|do|doas|elif|else|env|eval|exec|if|let|nice|nohup|setsid|source|sudo|then|time|"
    r"timeout\s+\S+|trap|until|while|xargs|[\w./-]*sh\d*(?:\s+-\w+)*\s+-\w*c|su\b[^;&|\n]*\s-\w*c|"
    r"ssh(?![\w-])[^;&|\n]*|\[\[[^;&|\n]*\s-(?:eq|ne|[gl][et]))\s+$"
)
_INDEX = r"[\w(]\[[^\]\s]*$|=\([^)]*\s\[[^\]\s]*$"
_HERE = r"<<-?\s*(?:(['\"])([\w.-]+)\1|\\?([\w.-]+))"
_COMMAND_ENDS = ";&|\n("


def refused(before: str, word: str) -> bool:
    """Return whether a shell would run a quoted word, or would not read it as one word.

    :param before: the text of the script before it
    :param word: the quoted word
    """
    stack, at, start = [""], 0, 0  # what is open, innermost last; the beginning of the last command
    here: list[str] = []  # the ends of here-documents that begin after this line
    while at < len(before):
        letter, state = before[at], stack[-1]
        if state == "'":
            if letter == "'":
                stack.pop()
        elif letter == "\\":
            at += 1
        elif letter == '"':
            stack.pop() if state == '"' else stack.append('"')
        elif letter == "`":
            stack.pop() if state == "`" else stack.append("`")
        elif before.startswith("$((", at) or (state != '"' and before.startswith("((", at)):
            stack.append("((")
            at += 1 + (letter == "$")
        elif state in ("((", "+") and letter in "()":
            if letter == "(":
                stack.append("+")
            elif state == "+" or before.startswith("))", at):
                stack.pop()
                at += state == "(("
        elif before.startswith("$(", at):
            stack.append("(")
            at, start = at + 1, at + 2
        elif before.startswith("${", at):
            stack.append("{")
            at += 1
        elif letter == "}" and state == "{":
            stack.pop()
        elif state != '"':
            if letter == "'" and (state != "{" or stack[-2] != '"'):
                stack.append("'")
            elif letter == ")" and state in ("(", "=("):
                stack.pop()
            elif before.startswith("=(", at):  # an array
                stack.append("=(")
                at += 1
            elif letter == "#" and (at == 0 or before[at - 1] in " \t\n;&|("):
                end = before.find("\n", at)
                if end < 0:
                    return True
                at = end - 1
            elif (
                before.startswith("<<", at)
                and not before.startswith("<<<", at)
                and (found := re.compile(_HERE).match(before, at))
            ):
                here.append(found[2] or found[3])
                at = found.end() - 1
            elif before.startswith("<<<", at):
                at += 2
            elif letter == "\n" and here:
                for end_word in here:
                    end_line = re.compile(rf"^\t*{re.escape(end_word)}$", re.MULTILINE).search(before, at + 1)
                    if end_line is None:
                        return True
                    at = end_line.end() - 1
                here = []
            if letter in _COMMAND_ENDS:
                start = at + 1
        at += 1
    # In arithmetic and in the index of an array, bash runs what is in the index of a variable.
    if stack[-1] not in ("", "(", "=(") or {"`", "((", "+"} & {*stack} or here or re.search(_INDEX, before):
        return True
    if stack[-1] == "=(":
        return False
    command = before[start:]
    if not command.strip() or re.search(_RUNS, before):
        return True  # it would be the program
    option = word.lstrip("'").startswith("-") and before[-1:] in (" ", "\t")
    return option and not re.search(r"\s--\s", command)
