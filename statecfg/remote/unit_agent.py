"""The agent's socket: programs on this host ask and change settings of units through it, while hooks run.

Boxes of AMP (see `amp`), a command each; the names and shapes of the first part are those of the original, so that
its command-line tools work here. `c` stands for `client_id`, a name with `?` may be left out. Every answer of JSON is
one document in `data`; with `parts` (any value) in the request, an answer too long for one value goes on in `data.1`,
`data.2` …, and the caller joins them.

=========================  ============================================  =========================================
command                    arguments                                     answer
=========================  ============================================  =========================================
relation_get               c, relation_id?, unit_name, setting_name      data: JSON; all settings for a name of ""
relation_set               c, relation_id?, json_blob                    nothing; a value of "" deletes
ListRelationsCommand       c, relation_id?                               members: unit names, a space between
relation_ids               c, relation_name                              ids: relation ids, a space between
config_get                 c, option_name                                data: JSON; all for "", null for none
get_unit_info              c, setting_name                               data: the text itself
open_port, close_port      c, port ("80", "1-9"; "" for icmp), proto     nothing
LogCommand                 c?, level (a number), message                 nothing
is_leader                  c                                             data: JSON, true or false
leader_get                 c, setting_name                               data: JSON; all for "", null for none
leader_set                 c, json_blob                                  nothing
status_set                 c, status, message                            nothing
status_get                 c                                             data: JSON {status, message, status-data}
goal_state                 c                                             data: JSON {relations, units}
opened_ports               c                                             data: JSON list of "80/tcp", "icmp" …
network_get                c, binding, relation_id?                      data: JSON as Juju's network-get gives
application_version_set    c, version                                    nothing (it is logged)
relation_service           c, relation_id?                               data: JSON name of the other side, or null
resource_get               c, name                                       always the error NoSuchResource
storage_list               c                                             data: JSON, an empty list
storage_get                c, storage_id, attribute                      always the error NoSuchStorage
=========================  ============================================  =========================================

Errors: NoSuchClient, NoSuchUnit, NoSuchKey, NotRelationContext, MustSpecifyRelationName, NoSuchRelation,
UnitRelationStateNotFound, BrokenRelation, NotLeader, NoSuchResource, NoSuchStorage, InvalidSetting, InvalidStatus,
InvalidPort, TooLong (an answer over 65,535 bytes that was not asked for in parts; changes over what a hook may make),
NotReached (the controller gave no answer), UNHANDLED (no such command), UNKNOWN (what was sent is no such request).
"""

from __future__ import annotations
