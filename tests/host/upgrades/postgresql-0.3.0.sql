CREATE TABLE schema_version (
    one INTEGER NOT NULL CHECK (one = 1),
    version INTEGER NOT NULL,
    PRIMARY KEY (one)
);

CREATE TABLE lease (
    name VARCHAR(255) NOT NULL,
    holder TEXT NOT NULL,
    token INTEGER NOT NULL,
    who TEXT NOT NULL,
    expires DOUBLE PRECISION NOT NULL,
    PRIMARY KEY (name)
);

CREATE TABLE commit_mark (
    id VARCHAR(32) NOT NULL,
    at DOUBLE PRECISION NOT NULL,
    PRIMARY KEY (id)
);

CREATE INDEX ix_commit_mark_at ON commit_mark (at);

CREATE TABLE host (
    id SERIAL NOT NULL,
    name VARCHAR(255) NOT NULL,
    facts TEXT NOT NULL,
    tags TEXT NOT NULL,
    metadata TEXT NOT NULL,
    boot_id TEXT NOT NULL,
    ledger TEXT NOT NULL,
    registered DOUBLE PRECISION,
    last_checkin DOUBLE PRECISION,
    installed TEXT,
    installed_at DOUBLE PRECISION,
    PRIMARY KEY (id),
    UNIQUE (name)
);

CREATE TABLE run (
    id VARCHAR(64) NOT NULL,
    started DOUBLE PRECISION NOT NULL,
    ended DOUBLE PRECISION NOT NULL,
    mode TEXT NOT NULL,
    who TEXT NOT NULL,
    playbook TEXT NOT NULL,
    PRIMARY KEY (id)
);

CREATE INDEX ix_run_started ON run (started);

CREATE TABLE going (
    id VARCHAR(64) NOT NULL,
    started DOUBLE PRECISION NOT NULL,
    beat DOUBLE PRECISION NOT NULL,
    mode TEXT NOT NULL,
    who TEXT NOT NULL,
    playbook TEXT NOT NULL,
    PRIMARY KEY (id)
);

CREATE TABLE hook (
    id SERIAL NOT NULL,
    name VARCHAR(250) NOT NULL,
    folded TEXT NOT NULL,
    type TEXT NOT NULL,
    folder TEXT NOT NULL,
    configuration TEXT NOT NULL,
    spec TEXT NOT NULL,
    access TEXT NOT NULL,
    created DOUBLE PRECISION NOT NULL,
    PRIMARY KEY (id),
    UNIQUE (folded)
);

CREATE TABLE object (
    id SERIAL NOT NULL,
    playbook TEXT NOT NULL,
    host VARCHAR(255) NOT NULL,
    spec TEXT NOT NULL,
    digest VARCHAR(64) NOT NULL,
    generation INTEGER NOT NULL,
    finalizers TEXT NOT NULL,
    status TEXT NOT NULL,
    created DOUBLE PRECISION NOT NULL,
    deleted DOUBLE PRECISION,
    PRIMARY KEY (id),
    UNIQUE (playbook, host)
);

CREATE TABLE entity_interface (
    number SERIAL NOT NULL,
    id VARCHAR(255) NOT NULL,
    name TEXT NOT NULL,
    vendor TEXT NOT NULL,
    nss TEXT NOT NULL,
    version TEXT NOT NULL,
    readonly BOOLEAN NOT NULL,
    PRIMARY KEY (number),
    UNIQUE (id)
);

CREATE TABLE entity_behavior (
    number SERIAL NOT NULL,
    owner VARCHAR(255) NOT NULL,
    id VARCHAR(640) NOT NULL,
    ref VARCHAR(640) NOT NULL,
    name TEXT NOT NULL,
    description TEXT,
    execution TEXT NOT NULL,
    PRIMARY KEY (number),
    UNIQUE (owner, ref)
);

CREATE TABLE entity_type (
    number SERIAL NOT NULL,
    id VARCHAR(255) NOT NULL,
    name TEXT NOT NULL,
    vendor TEXT NOT NULL,
    nss TEXT NOT NULL,
    version TEXT NOT NULL,
    description TEXT,
    external_id TEXT,
    schema TEXT NOT NULL,
    interfaces TEXT NOT NULL,
    hooks TEXT NOT NULL,
    inherited_version TEXT,
    max_implicit_right TEXT,
    readonly BOOLEAN NOT NULL,
    PRIMARY KEY (number),
    UNIQUE (id)
);

CREATE TABLE entity_grant (
    number SERIAL NOT NULL,
    id VARCHAR(255) NOT NULL,
    object VARCHAR(255) NOT NULL,
    member VARCHAR(255) NOT NULL,
    level TEXT NOT NULL,
    PRIMARY KEY (number),
    UNIQUE (object, member),
    UNIQUE (id)
);

CREATE INDEX ix_entity_grant_member ON entity_grant (member);

CREATE TABLE entity_task (
    number SERIAL NOT NULL,
    id VARCHAR(255) NOT NULL,
    parent VARCHAR(255) NOT NULL,
    name VARCHAR(64) NOT NULL,
    operation TEXT NOT NULL,
    entity VARCHAR(255) NOT NULL,
    entity_name TEXT NOT NULL,
    "user" TEXT NOT NULL,
    org TEXT NOT NULL,
    role TEXT NOT NULL,
    status VARCHAR(32) NOT NULL,
    progress INTEGER NOT NULL,
    details TEXT NOT NULL,
    result TEXT NOT NULL,
    error TEXT NOT NULL,
    created DOUBLE PRECISION NOT NULL,
    started DOUBLE PRECISION,
    ended DOUBLE PRECISION,
    work TEXT NOT NULL,
    serial BOOLEAN NOT NULL,
    due DOUBLE PRECISION,
    worker TEXT NOT NULL,
    invocation VARCHAR(64),
    PRIMARY KEY (number),
    UNIQUE (id)
);

CREATE INDEX ix_entity_task_parent ON entity_task (parent);

CREATE INDEX ix_entity_task_invocation ON entity_task (invocation);

CREATE INDEX ix_entity_task_status ON entity_task (status);

CREATE INDEX ix_entity_task_due ON entity_task (due);

CREATE INDEX ix_entity_task_entity ON entity_task (entity);

CREATE INDEX ix_entity_task_ended ON entity_task (ended);

CREATE TABLE api_token (
    id SERIAL NOT NULL,
    digest VARCHAR(64) NOT NULL,
    name TEXT NOT NULL,
    org TEXT NOT NULL,
    role TEXT NOT NULL,
    created DOUBLE PRECISION NOT NULL,
    expires DOUBLE PRECISION,
    invocation VARCHAR(64),
    PRIMARY KEY (id),
    UNIQUE (digest)
);

CREATE INDEX ix_api_token_invocation ON api_token (invocation);

CREATE TABLE service (
    id SERIAL NOT NULL,
    project VARCHAR(255) NOT NULL,
    name VARCHAR(255) NOT NULL,
    playbook TEXT NOT NULL,
    alive BOOLEAN NOT NULL,
    charm TEXT NOT NULL,
    digest VARCHAR(64) NOT NULL,
    endpoints TEXT NOT NULL,
    schema TEXT NOT NULL,
    settings TEXT NOT NULL,
    overrides TEXT NOT NULL,
    salt VARCHAR(32) NOT NULL,
    secrets VARCHAR(64) NOT NULL,
    leader TEXT NOT NULL,
    timeout DOUBLE PRECISION NOT NULL,
    hosts TEXT NOT NULL,
    without TEXT NOT NULL,
    next INTEGER NOT NULL,
    created DOUBLE PRECISION NOT NULL,
    PRIMARY KEY (id),
    UNIQUE (project, name)
);

CREATE TABLE binding (
    host INTEGER NOT NULL,
    playbook TEXT NOT NULL,
    since DOUBLE PRECISION NOT NULL,
    ledger TEXT NOT NULL,
    PRIMARY KEY (host, playbook),
    FOREIGN KEY(host) REFERENCES host (id) ON DELETE CASCADE
);

CREATE TABLE run_host (
    run VARCHAR(64) NOT NULL,
    host VARCHAR(255) NOT NULL,
    status TEXT NOT NULL,
    summary TEXT NOT NULL,
    report TEXT NOT NULL,
    PRIMARY KEY (run, host),
    FOREIGN KEY(run) REFERENCES run (id) ON DELETE CASCADE
);

CREATE INDEX ix_run_host_host ON run_host (host);

CREATE TABLE going_host (
    run VARCHAR(64) NOT NULL,
    host VARCHAR(255) NOT NULL,
    status TEXT NOT NULL,
    summary TEXT NOT NULL,
    PRIMARY KEY (run, host),
    FOREIGN KEY(run) REFERENCES going (id) ON DELETE CASCADE
);

CREATE TABLE invocation (
    id SERIAL NOT NULL,
    hook INTEGER NOT NULL,
    event TEXT NOT NULL,
    host INTEGER,
    given TEXT NOT NULL,
    playbook TEXT,
    queued DOUBLE PRECISION NOT NULL,
    started INTEGER NOT NULL,
    PRIMARY KEY (id),
    FOREIGN KEY(hook) REFERENCES hook (id) ON DELETE CASCADE
);

CREATE INDEX ix_invocation_hook ON invocation (hook);

CREATE TABLE event (
    id SERIAL NOT NULL,
    at DOUBLE PRECISION NOT NULL,
    hook INTEGER,
    host INTEGER,
    playbook TEXT,
    invocation INTEGER,
    severity TEXT NOT NULL,
    entry TEXT NOT NULL,
    detail TEXT NOT NULL,
    PRIMARY KEY (id),
    FOREIGN KEY(hook) REFERENCES hook (id) ON DELETE SET NULL,
    FOREIGN KEY(host) REFERENCES host (id) ON DELETE SET NULL
);

CREATE INDEX ix_event_invocation ON event (invocation);

CREATE INDEX ix_event_hook ON event (hook);

CREATE INDEX ix_event_host ON event (host);

CREATE TABLE requeue (
    object INTEGER NOT NULL,
    hook VARCHAR(250) NOT NULL,
    phase VARCHAR(32) NOT NULL,
    attempts INTEGER NOT NULL,
    since DOUBLE PRECISION NOT NULL,
    next DOUBLE PRECISION NOT NULL,
    error TEXT NOT NULL,
    PRIMARY KEY (object, hook, phase),
    FOREIGN KEY(object) REFERENCES object (id) ON DELETE CASCADE
);

CREATE INDEX ix_requeue_next ON requeue (next);

CREATE TABLE entity_type_interface (
    interface VARCHAR(255) NOT NULL,
    type VARCHAR(255) NOT NULL,
    PRIMARY KEY (interface, type),
    FOREIGN KEY(interface) REFERENCES entity_interface (id),
    FOREIGN KEY(type) REFERENCES entity_type (id) ON DELETE CASCADE
);

CREATE TABLE entity (
    number SERIAL NOT NULL,
    id VARCHAR(255) NOT NULL,
    type VARCHAR(255) NOT NULL,
    name TEXT NOT NULL,
    external_id TEXT,
    content TEXT NOT NULL,
    state VARCHAR(32) NOT NULL,
    message TEXT NOT NULL,
    revision INTEGER NOT NULL,
    owner TEXT NOT NULL,
    org TEXT NOT NULL,
    tenant TEXT NOT NULL,
    created DOUBLE PRECISION NOT NULL,
    modified DOUBLE PRECISION NOT NULL,
    PRIMARY KEY (number),
    UNIQUE (id),
    FOREIGN KEY(type) REFERENCES entity_type (id)
);

CREATE INDEX entity_by_type ON entity (type, number);

CREATE INDEX entity_by_owner ON entity (org, owner);

CREATE INDEX entity_by_state ON entity (type, state);

CREATE INDEX entity_by_name ON entity (type, name);

CREATE TABLE entity_behavior_grant (
    number SERIAL NOT NULL,
    type VARCHAR(255) NOT NULL,
    behavior VARCHAR(640) NOT NULL,
    level TEXT NOT NULL,
    PRIMARY KEY (number),
    UNIQUE (type, behavior, level),
    FOREIGN KEY(type) REFERENCES entity_type (id) ON DELETE CASCADE
);

CREATE TABLE unit (
    id SERIAL NOT NULL,
    service INTEGER NOT NULL,
    number INTEGER NOT NULL,
    host VARCHAR(255) NOT NULL,
    added BOOLEAN NOT NULL,
    dying BOOLEAN NOT NULL,
    gone BOOLEAN NOT NULL,
    state VARCHAR(32) NOT NULL,
    error VARCHAR(32) NOT NULL,
    failed VARCHAR(64) NOT NULL,
    why TEXT NOT NULL,
    tried VARCHAR(64) NOT NULL,
    charm VARCHAR(64) NOT NULL,
    configured VARCHAR(64) NOT NULL,
    addresses TEXT NOT NULL,
    ports TEXT NOT NULL,
    status TEXT NOT NULL,
    message TEXT NOT NULL,
    since DOUBLE PRECISION NOT NULL,
    PRIMARY KEY (id),
    UNIQUE (service, number),
    FOREIGN KEY(service) REFERENCES service (id) ON DELETE CASCADE
);

CREATE INDEX ix_unit_host ON unit (host);

CREATE TABLE relation (
    id SERIAL NOT NULL,
    playbook TEXT NOT NULL,
    service INTEGER NOT NULL,
    name VARCHAR(255) NOT NULL,
    other INTEGER,
    other_name VARCHAR(255),
    dying BOOLEAN NOT NULL,
    created DOUBLE PRECISION NOT NULL,
    PRIMARY KEY (id),
    FOREIGN KEY(service) REFERENCES service (id) ON DELETE CASCADE,
    FOREIGN KEY(other) REFERENCES service (id) ON DELETE CASCADE
);

CREATE INDEX ix_relation_other ON relation (other);

CREATE INDEX ix_relation_service ON relation (service);

CREATE TABLE unit_log (
    id SERIAL NOT NULL,
    service INTEGER NOT NULL,
    at DOUBLE PRECISION NOT NULL,
    unit VARCHAR(300) NOT NULL,
    hook TEXT NOT NULL,
    level INTEGER NOT NULL,
    text TEXT NOT NULL,
    PRIMARY KEY (id),
    FOREIGN KEY(service) REFERENCES service (id) ON DELETE CASCADE
);

CREATE INDEX ix_unit_log_service ON unit_log (service);

CREATE TABLE entity_metadata (
    number SERIAL NOT NULL,
    id VARCHAR(255) NOT NULL,
    entity VARCHAR(255) NOT NULL,
    domain VARCHAR(32) NOT NULL,
    namespace VARCHAR(255) NOT NULL,
    key VARCHAR(255) NOT NULL,
    type VARCHAR(32) NOT NULL,
    value TEXT NOT NULL,
    persistent BOOLEAN NOT NULL,
    readonly BOOLEAN NOT NULL,
    revision INTEGER NOT NULL,
    PRIMARY KEY (number),
    UNIQUE (entity, domain, namespace, key),
    UNIQUE (id),
    FOREIGN KEY(entity) REFERENCES entity (id) ON DELETE CASCADE
);

CREATE TABLE relation_unit (
    relation INTEGER NOT NULL,
    unit INTEGER NOT NULL,
    name VARCHAR(255) NOT NULL,
    settings TEXT NOT NULL,
    members TEXT NOT NULL,
    gone BOOLEAN NOT NULL,
    failed TEXT NOT NULL,
    remote VARCHAR(300) NOT NULL,
    upto INTEGER NOT NULL,
    why TEXT NOT NULL,
    tried VARCHAR(64) NOT NULL,
    PRIMARY KEY (relation, unit),
    FOREIGN KEY(relation) REFERENCES relation (id) ON DELETE CASCADE,
    FOREIGN KEY(unit) REFERENCES unit (id) ON DELETE CASCADE
);

CREATE INDEX ix_relation_unit_unit ON relation_unit (unit);

CREATE TABLE unit_event (
    id SERIAL NOT NULL,
    unit INTEGER NOT NULL,
    relation INTEGER NOT NULL,
    remote VARCHAR(300) NOT NULL,
    op VARCHAR(16) NOT NULL,
    PRIMARY KEY (id),
    FOREIGN KEY(unit) REFERENCES unit (id) ON DELETE CASCADE,
    FOREIGN KEY(relation) REFERENCES relation (id) ON DELETE CASCADE
);

CREATE INDEX ix_unit_event_relation ON unit_event (relation);

CREATE INDEX ix_unit_event_unit ON unit_event (unit);
