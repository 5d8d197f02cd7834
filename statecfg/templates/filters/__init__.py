"""Filters and tests of templates besides Jinja2's own. Imports `remote/graph`.

They behave as in Ansible, so that templates can be moved unchanged. All are pure: the same arguments always give the
same result. Filters that read files, the clock or random numbers don't exist.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from statecfg.templates.filters import addresses, data, lists, numbers, passwords, patterns, text, truth, versions


def _named(*functions: Callable[..., Any]) -> Mapping[str, Callable[..., Any]]:
    return {function.__name__.rstrip("_"): function for function in functions}


FILTERS: Mapping[str, Callable[..., Any]] = {
    **_named(truth.bool_, truth.ternary, truth.mandatory),
    **_named(text.comment, text.b64encode, text.b64decode, text.quote, text.split, text.to_uuid, text.strftime),
    **_named(text.hash_, text.md5, text.sha1, text.checksum, passwords.password_hash),
    **_named(text.basename, text.dirname, text.splitext, text.normpath, text.path_join, text.relpath, text.commonpath),
    **_named(text.urldecode, text.urlsplit_),
    **_named(patterns.regex_replace, patterns.regex_search, patterns.regex_findall, patterns.regex_escape),
    **_named(lists.combine, lists.flatten, lists.union, lists.intersect, lists.difference, lists.symmetric_difference),
    **_named(lists.zip_, lists.zip_longest, lists.product, lists.permutations, lists.combinations),
    **_named(lists.dict2items, lists.items2dict, lists.rekey_on_member, lists.extract, lists.subelements),
    **_named(data.to_json, data.to_nice_json, data.from_json, data.to_yaml, data.to_nice_yaml, data.from_yaml),
    **_named(data.from_yaml_all, data.type_debug),
    **_named(numbers.human_readable, numbers.human_to_bytes, numbers.log, numbers.pow_, numbers.root),
    **_named(addresses.ipaddr, addresses.ipv4, addresses.ipv6, addresses.ipwrap),
}
TESTS: Mapping[str, Callable[..., Any]] = {
    "version": versions.version,
    "version_compare": versions.version,
    "regex": patterns.regex_test,
    **_named(patterns.match, patterns.search),
    **_named(lists.contains, lists.subset, lists.superset, lists.any_, lists.all_),
    "issubset": lists.subset,
    "issuperset": lists.superset,
    **_named(truth.truthy, truth.falsy),
}
