BEGIN TRANSACTION;
CREATE TABLE api_token (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
	digest VARCHAR(64) NOT NULL, 
	name TEXT NOT NULL, 
	org TEXT NOT NULL, 
	role TEXT NOT NULL, 
	created DOUBLE NOT NULL, 
	expires DOUBLE, 
	invocation VARCHAR(64), 
	UNIQUE (digest)
);
CREATE TABLE binding (
	host INTEGER NOT NULL, 
	playbook TEXT NOT NULL, 
	since DOUBLE NOT NULL, 
	ledger TEXT NOT NULL, 
	PRIMARY KEY (host, playbook), 
	FOREIGN KEY(host) REFERENCES host (id) ON DELETE CASCADE
);
INSERT INTO "binding" VALUES(1,'shop/site.yml',1.79534327714147353173e+09,'baa4388bd7224ce1a39fa78148149478');
INSERT INTO "binding" VALUES(2,'shop/site.yml',1.79534327727906632427e+09,'6eaff99587e046c7abb15a1e8a657d9c');
INSERT INTO "binding" VALUES(1,'blog/site.yml',1.79534328706509661672e+09,'baa4388bd7224ce1a39fa78148149478');
CREATE TABLE commit_mark (
	id VARCHAR(32) NOT NULL, 
	at DOUBLE NOT NULL, 
	PRIMARY KEY (id)
);
CREATE TABLE entity (
	number INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
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
	created DOUBLE NOT NULL, 
	modified DOUBLE NOT NULL, 
	UNIQUE (id), 
	FOREIGN KEY(type) REFERENCES entity_type (id)
);
CREATE TABLE entity_behavior (
	number INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
	owner VARCHAR(255) NOT NULL, 
	id VARCHAR(640) NOT NULL, 
	ref VARCHAR(640) NOT NULL, 
	name TEXT NOT NULL, 
	description TEXT, 
	execution TEXT NOT NULL, 
	UNIQUE (owner, ref)
);
CREATE TABLE entity_behavior_grant (
	number INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
	type VARCHAR(255) NOT NULL, 
	behavior VARCHAR(640) NOT NULL, 
	level TEXT NOT NULL, 
	UNIQUE (type, behavior, level), 
	FOREIGN KEY(type) REFERENCES entity_type (id) ON DELETE CASCADE
);
CREATE TABLE entity_grant (
	number INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
	id VARCHAR(255) NOT NULL, 
	object VARCHAR(255) NOT NULL, 
	member VARCHAR(255) NOT NULL, 
	level TEXT NOT NULL, 
	UNIQUE (object, member), 
	UNIQUE (id)
);
CREATE TABLE entity_interface (
	number INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
	id VARCHAR(255) NOT NULL, 
	name TEXT NOT NULL, 
	vendor TEXT NOT NULL, 
	nss TEXT NOT NULL, 
	version TEXT NOT NULL, 
	readonly BOOLEAN NOT NULL, 
	UNIQUE (id)
);
CREATE TABLE entity_metadata (
	number INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
	id VARCHAR(255) NOT NULL, 
	entity VARCHAR(255) NOT NULL, 
	domain VARCHAR(32) NOT NULL, 
	namespace VARCHAR(255) NOT NULL, 
	"key" VARCHAR(255) NOT NULL, 
	type VARCHAR(32) NOT NULL, 
	value TEXT NOT NULL, 
	persistent BOOLEAN NOT NULL, 
	readonly BOOLEAN NOT NULL, 
	revision INTEGER NOT NULL, 
	UNIQUE (entity, domain, namespace, "key"), 
	UNIQUE (id), 
	FOREIGN KEY(entity) REFERENCES entity (id) ON DELETE CASCADE
);
CREATE TABLE entity_task (
	number INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
	id VARCHAR(255) NOT NULL, 
	parent VARCHAR(255) NOT NULL, 
	name VARCHAR(64) NOT NULL, 
	operation TEXT NOT NULL, 
	entity VARCHAR(255) NOT NULL, 
	entity_name TEXT NOT NULL, 
	user TEXT NOT NULL, 
	org TEXT NOT NULL, 
	role TEXT NOT NULL, 
	status VARCHAR(32) NOT NULL, 
	progress INTEGER NOT NULL, 
	details TEXT NOT NULL, 
	result TEXT NOT NULL, 
	error TEXT NOT NULL, 
	created DOUBLE NOT NULL, 
	started DOUBLE, 
	ended DOUBLE, 
	work TEXT NOT NULL, 
	serial BOOLEAN NOT NULL, 
	due DOUBLE, 
	worker TEXT NOT NULL, 
	invocation VARCHAR(64), 
	UNIQUE (id)
);
CREATE TABLE entity_type (
	number INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
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
	UNIQUE (id)
);
CREATE TABLE entity_type_interface (
	interface VARCHAR(255) NOT NULL, 
	type VARCHAR(255) NOT NULL, 
	PRIMARY KEY (interface, type), 
	FOREIGN KEY(interface) REFERENCES entity_interface (id), 
	FOREIGN KEY(type) REFERENCES entity_type (id) ON DELETE CASCADE
);
CREATE TABLE event (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
	at DOUBLE NOT NULL, 
	hook INTEGER, 
	host INTEGER, 
	playbook TEXT, 
	invocation INTEGER, 
	severity TEXT NOT NULL, 
	entry TEXT NOT NULL, 
	detail TEXT NOT NULL, 
	FOREIGN KEY(hook) REFERENCES hook (id) ON DELETE SET NULL, 
	FOREIGN KEY(host) REFERENCES host (id) ON DELETE SET NULL
);
INSERT INTO "event" VALUES(1,1.7953432872494235039e+09,1,1,'blog/site.yml',1,'info','{"event":"node-install-finished","exit_status":0,"msg":"done"}','');
CREATE TABLE going (
	id VARCHAR(64) NOT NULL, 
	started DOUBLE NOT NULL, 
	beat DOUBLE NOT NULL, 
	mode TEXT NOT NULL, 
	who TEXT NOT NULL, 
	playbook TEXT NOT NULL, 
	PRIMARY KEY (id)
);
CREATE TABLE going_host (
	run VARCHAR(64) NOT NULL, 
	host VARCHAR(255) NOT NULL, 
	status TEXT NOT NULL, 
	summary TEXT NOT NULL, 
	PRIMARY KEY (run, host), 
	FOREIGN KEY(run) REFERENCES going (id) ON DELETE CASCADE
);
CREATE TABLE hook (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
	name VARCHAR(250) NOT NULL, 
	folded TEXT NOT NULL, 
	type TEXT NOT NULL, 
	folder TEXT NOT NULL, 
	configuration TEXT NOT NULL, 
	spec TEXT NOT NULL, 
	access TEXT NOT NULL, 
	created DOUBLE NOT NULL, 
	UNIQUE (folded)
);
INSERT INTO "hook" VALUES(1,'note','note','note','/srv/blog/fabric/hooks/note.hook','{}','{"hosts":null,"types":[],"names":[],"tags":[],"events":[],"where":"controller","order":100,"deadline":"PT30S","on_failure":"abort","declared":false}','["root"]',1.79534328520726585388e+09);
CREATE TABLE host (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
	name VARCHAR(255) NOT NULL, 
	facts TEXT NOT NULL, 
	tags TEXT NOT NULL, 
	metadata TEXT NOT NULL, 
	boot_id TEXT NOT NULL, 
	ledger TEXT NOT NULL, 
	registered DOUBLE, 
	last_checkin DOUBLE, 
	installed TEXT, 
	installed_at DOUBLE, 
	UNIQUE (name)
);
INSERT INTO "host" VALUES(1,'light1','{"hostname":"light1","kernel":"6.18.44-fc-v669","architecture":"x86_64","os":{"id":"debian","version_id":"12","version_codename":"bookworm","pretty_name":"Debian GNU/Linux 12 (bookworm)"},"python":"3.11.2","cpus":2,"memory":24105,"init":"other","boot_id":"9f560230-16d4-4d75-a887-23d5e64c905d","machine_id":"12e94a356409bb14678b21f8d04cd134","user":"root"}','["canary"]','{"rack":12}','9f560230-16d4-4d75-a887-23d5e64c905d','baa4388bd7224ce1a39fa78148149478',1.79534327707842063896e+09,1.79534328705791425707e+09,'blog/site.yml',1.79534328718836379053e+09);
INSERT INTO "host" VALUES(2,'light2','{"hostname":"light2","kernel":"6.18.44-fc-v669","architecture":"x86_64","os":{"id":"debian","version_id":"12","version_codename":"bookworm","pretty_name":"Debian GNU/Linux 12 (bookworm)"},"python":"3.11.2","cpus":2,"memory":24105,"init":"other","boot_id":"9f560230-16d4-4d75-a887-23d5e64c905d","machine_id":"5c6f2abca97cab2a7209ef085a678bc5","user":"root"}','[]','{}','9f560230-16d4-4d75-a887-23d5e64c905d','6eaff99587e046c7abb15a1e8a657d9c',1.79534327727597665782e+09,1.79534328290922307966e+09,'shop/site.yml',1.79534328317379474632e+09);
INSERT INTO "host" VALUES(3,'@local','{}','["mine"]','{}','','',NULL,NULL,NULL,NULL);
CREATE TABLE invocation (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
	hook INTEGER NOT NULL, 
	event TEXT NOT NULL, 
	host INTEGER, 
	given TEXT NOT NULL, 
	playbook TEXT, 
	queued DOUBLE NOT NULL, 
	started INTEGER NOT NULL, 
	FOREIGN KEY(hook) REFERENCES hook (id) ON DELETE CASCADE
);
CREATE TABLE lease (
	name VARCHAR(255) NOT NULL, 
	holder TEXT NOT NULL, 
	token INTEGER NOT NULL, 
	who TEXT NOT NULL, 
	expires DOUBLE NOT NULL, 
	PRIMARY KEY (name)
);
CREATE TABLE object (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
	playbook TEXT NOT NULL, 
	host VARCHAR(255) NOT NULL, 
	spec TEXT NOT NULL, 
	digest VARCHAR(64) NOT NULL, 
	generation INTEGER NOT NULL, 
	finalizers TEXT NOT NULL, 
	status TEXT NOT NULL, 
	created DOUBLE NOT NULL, 
	deleted DOUBLE, 
	UNIQUE (playbook, host)
);
CREATE TABLE relation (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
	playbook TEXT NOT NULL, 
	service INTEGER NOT NULL, 
	name VARCHAR(255) NOT NULL, 
	other INTEGER, 
	other_name VARCHAR(255), 
	dying BOOLEAN NOT NULL, 
	created DOUBLE NOT NULL, 
	FOREIGN KEY(service) REFERENCES service (id) ON DELETE CASCADE, 
	FOREIGN KEY(other) REFERENCES service (id) ON DELETE CASCADE
);
INSERT INTO "relation" VALUES(2,'shop/site.yml',1,'x',3,'x',0,1.7953432770844347477e+09);
INSERT INTO "relation" VALUES(3,'shop/site.yml',1,'x',2,'x',0,1.79534328082017874718e+09);
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
INSERT INTO "relation_unit" VALUES(2,1,'x','{"private-address":"10.208.4.2","of":"a/0"}','["c/0"]',0,'','',0,'""','');
INSERT INTO "relation_unit" VALUES(2,3,'x','{"private-address":"10.208.4.3","of":"c/0"}','["a/0"]',0,'','',0,'""','');
INSERT INTO "relation_unit" VALUES(3,1,'x','{"private-address":"10.208.4.2","of":"a/0"}','["b/0"]',0,'','',0,'""','');
INSERT INTO "relation_unit" VALUES(3,2,'x','{"private-address":"10.208.4.3","of":"b/0"}','["a/0"]',0,'','',0,'""','');
CREATE TABLE requeue (
	object INTEGER NOT NULL, 
	hook VARCHAR(250) NOT NULL, 
	phase VARCHAR(32) NOT NULL, 
	attempts INTEGER NOT NULL, 
	since DOUBLE NOT NULL, 
	next DOUBLE NOT NULL, 
	error TEXT NOT NULL, 
	PRIMARY KEY (object, hook, phase), 
	FOREIGN KEY(object) REFERENCES object (id) ON DELETE CASCADE
);
CREATE TABLE run (
	id VARCHAR(64) NOT NULL, 
	started DOUBLE NOT NULL, 
	ended DOUBLE NOT NULL, 
	mode TEXT NOT NULL, 
	who TEXT NOT NULL, 
	playbook TEXT NOT NULL, 
	PRIMARY KEY (id)
);
INSERT INTO "run" VALUES('1ae9f34cbcf3',1.79534327653446626666e+09,1.79534327775057315828e+09,'apply','ann@desk','site.yml');
INSERT INTO "run" VALUES('4a2b37a5786c',1.79534327981054902083e+09,1.79534328004250955581e+09,'apply','ann@desk','site.yml');
INSERT INTO "run" VALUES('c9e82306649d',1.7953432827874908447e+09,1.79534328317562460897e+09,'apply','ann@desk','site.yml');
INSERT INTO "run" VALUES('49e09dc07dcc',1.79534328622898840905e+09,1.79534328719596195222e+09,'apply','ann@desk','site.yml');
CREATE TABLE run_host (
	run VARCHAR(64) NOT NULL, 
	host VARCHAR(255) NOT NULL, 
	status TEXT NOT NULL, 
	summary TEXT NOT NULL, 
	report TEXT NOT NULL, 
	PRIMARY KEY (run, host), 
	FOREIGN KEY(run) REFERENCES run (id) ON DELETE CASCADE
);
INSERT INTO "run_host" VALUES('1ae9f34cbcf3','light1','ok','{}','{"status":"ok","layers":[],"summary":{},"removals":[],"left":[],"peer":"ssh-ed25519 SHA256:VS8dh4J4NVpkMqpezd9IVN99neX1AQg+slGQ6a42cc0","owed":[],"facts":{"hostname":"light1","kernel":"6.18.44-fc-v669","architecture":"x86_64","os":{"id":"debian","version_id":"12","version_codename":"bookworm","pretty_name":"Debian GNU/Linux 12 (bookworm)"},"python":"3.11.2","cpus":2,"memory":24105,"init":"other","boot_id":"9f560230-16d4-4d75-a887-23d5e64c905d","machine_id":"12e94a356409bb14678b21f8d04cd134","user":"root"},"ledger":"baa4388bd7224ce1a39fa78148149478","fingerprints":{},"units":[{"unit":"a/0","service":"a","state":"started","hooks":[{"unit":"a/0","hook":"install","status":"ok","seconds":0.073},{"unit":"a/0","hook":"config-changed","status":"ok","seconds":0.02},{"unit":"a/0","hook":"start","status":"ok","seconds":0.017},{"unit":"a/0","hook":"x-relation-joined","relation":"x:1","remote":"b/0","status":"ok","seconds":0.089},{"unit":"a/0","hook":"x-relation-changed","relation":"x:1","remote":"b/0","status":"ok","seconds":0.017},{"unit":"a/0","hook":"x-relation-joined","relation":"x:2","remote":"c/0","status":"ok","seconds":0.064},{"unit":"a/0","hook":"x-relation-changed","relation":"x:2","remote":"c/0","status":"ok","seconds":0.014},{"unit":"a/0","hook":"x-relation-changed","relation":"x:2","remote":"c/0","status":"ok","seconds":0.006}]}]}');
INSERT INTO "run_host" VALUES('1ae9f34cbcf3','light2','ok','{"changed":1}','{"status":"ok","layers":[[{"name":"file:/srv/b.conf","type":"file","outcome":"changed","changes":[{"object":"/srv/b.conf","field":"kind","before":null,"after":"file"},{"object":"/srv/b.conf","field":"mode","before":null,"after":"0644"},{"object":"/srv/b.conf","field":"owner","before":null,"after":"root"},{"object":"/srv/b.conf","field":"group","before":null,"after":"root"},{"object":"/srv/b.conf","field":"content","before":null,"after":"sha256:3e23e8160039594a33894f6564e1b1348bbd7a0088d42c4acb73eeaed59c009d (1 bytes)","diff":"--- /dev/null\n+++ /srv/b.conf\n@@ -0,0 +1 @@\n+b\n\\ No newline at end of file\n"}],"actions":[{"op":"write","args":{"path":"/srv/b.conf","content":"sha256:3e23e8160039594a33894f6564e1b1348bbd7a0088d42c4acb73eeaed59c009d (1 bytes)"},"status":"ok"}],"position":"site.yml:8:16"}]],"summary":{"changed":1},"removals":[],"left":[],"peer":"ssh-ed25519 SHA256:7Av3P33F/8+9f2gY6xYN+jHEikRoXL73J3HOzx7Odrk","owed":[],"facts":{"hostname":"light2","kernel":"6.18.44-fc-v669","architecture":"x86_64","os":{"id":"debian","version_id":"12","version_codename":"bookworm","pretty_name":"Debian GNU/Linux 12 (bookworm)"},"python":"3.11.2","cpus":2,"memory":24105,"init":"other","boot_id":"9f560230-16d4-4d75-a887-23d5e64c905d","machine_id":"5c6f2abca97cab2a7209ef085a678bc5","user":"root"},"ledger":"6eaff99587e046c7abb15a1e8a657d9c","fingerprints":{"file:/srv/b.conf":"a5c114a69228d1658fbedbb70ab83358"},"units":[{"unit":"b/0","service":"b","state":"started","hooks":[{"unit":"b/0","hook":"install","status":"ok","seconds":0.031},{"unit":"b/0","hook":"config-changed","status":"ok","seconds":0.019},{"unit":"b/0","hook":"start","status":"ok","seconds":0.014},{"unit":"b/0","hook":"x-relation-joined","relation":"x:1","remote":"a/0","status":"ok","seconds":0.067},{"unit":"b/0","hook":"x-relation-changed","relation":"x:1","remote":"a/0","status":"ok","seconds":0.017},{"unit":"b/0","hook":"x-relation-changed","relation":"x:1","remote":"a/0","status":"ok","seconds":0.007}]},{"unit":"c/0","service":"c","state":"started","hooks":[{"unit":"c/0","hook":"install","status":"ok","seconds":0.016},{"unit":"c/0","hook":"config-changed","status":"ok","seconds":0.007},{"unit":"c/0","hook":"start","status":"ok","seconds":0.009},{"unit":"c/0","hook":"x-relation-joined","relation":"x:2","remote":"a/0","status":"ok","seconds":0.084},{"unit":"c/0","hook":"x-relation-changed","relation":"x:2","remote":"a/0","status":"ok","seconds":0.006}]}]}');
INSERT INTO "run_host" VALUES('4a2b37a5786c','light1','ok','{}','{"status":"ok","layers":[],"summary":{},"removals":[],"left":[],"peer":"ssh-ed25519 SHA256:VS8dh4J4NVpkMqpezd9IVN99neX1AQg+slGQ6a42cc0","owed":[],"facts":{"hostname":"light1","kernel":"6.18.44-fc-v669","architecture":"x86_64","os":{"id":"debian","version_id":"12","version_codename":"bookworm","pretty_name":"Debian GNU/Linux 12 (bookworm)"},"python":"3.11.2","cpus":2,"memory":24105,"init":"other","boot_id":"9f560230-16d4-4d75-a887-23d5e64c905d","machine_id":"12e94a356409bb14678b21f8d04cd134","user":"root"},"ledger":"baa4388bd7224ce1a39fa78148149478","fingerprints":{},"units":[{"unit":"a/0","service":"a","state":"started","hooks":[{"unit":"a/0","hook":"x-relation-departed","relation":"x:1","remote":"b/0","status":"ok","seconds":0.02},{"unit":"a/0","hook":"x-relation-broken","relation":"x:1","remote":"","status":"ok","seconds":0.012}]}]}');
INSERT INTO "run_host" VALUES('4a2b37a5786c','light2','ok','{"unchanged":1}','{"status":"ok","layers":[[{"name":"file:/srv/b.conf","type":"file","outcome":"unchanged","changes":[],"actions":[],"position":"site.yml:8:16"}]],"summary":{"unchanged":1},"removals":[],"left":[],"peer":"ssh-ed25519 SHA256:7Av3P33F/8+9f2gY6xYN+jHEikRoXL73J3HOzx7Odrk","owed":[],"facts":{"hostname":"light2","kernel":"6.18.44-fc-v669","architecture":"x86_64","os":{"id":"debian","version_id":"12","version_codename":"bookworm","pretty_name":"Debian GNU/Linux 12 (bookworm)"},"python":"3.11.2","cpus":2,"memory":24105,"init":"other","boot_id":"9f560230-16d4-4d75-a887-23d5e64c905d","machine_id":"5c6f2abca97cab2a7209ef085a678bc5","user":"root"},"ledger":"6eaff99587e046c7abb15a1e8a657d9c","fingerprints":{},"units":[{"unit":"b/0","service":"b","state":"started","hooks":[{"unit":"b/0","hook":"x-relation-departed","relation":"x:1","remote":"a/0","status":"ok","seconds":0.025},{"unit":"b/0","hook":"x-relation-broken","relation":"x:1","remote":"","status":"ok","seconds":0.013}]},{"unit":"c/0","service":"c","state":"started","hooks":[]}]}');
INSERT INTO "run_host" VALUES('c9e82306649d','light1','ok','{}','{"status":"ok","layers":[],"summary":{},"removals":[],"left":[],"peer":"ssh-ed25519 SHA256:VS8dh4J4NVpkMqpezd9IVN99neX1AQg+slGQ6a42cc0","owed":[],"facts":{"hostname":"light1","kernel":"6.18.44-fc-v669","architecture":"x86_64","os":{"id":"debian","version_id":"12","version_codename":"bookworm","pretty_name":"Debian GNU/Linux 12 (bookworm)"},"python":"3.11.2","cpus":2,"memory":24105,"init":"other","boot_id":"9f560230-16d4-4d75-a887-23d5e64c905d","machine_id":"12e94a356409bb14678b21f8d04cd134","user":"root"},"ledger":"baa4388bd7224ce1a39fa78148149478","fingerprints":{},"units":[{"unit":"a/0","service":"a","state":"started","hooks":[{"unit":"a/0","hook":"x-relation-joined","relation":"x:3","remote":"b/0","status":"ok","seconds":0.1},{"unit":"a/0","hook":"x-relation-changed","relation":"x:3","remote":"b/0","status":"ok","seconds":0.012}]}]}');
INSERT INTO "run_host" VALUES('c9e82306649d','light2','ok','{"unchanged":1}','{"status":"ok","layers":[[{"name":"file:/srv/b.conf","type":"file","outcome":"unchanged","changes":[],"actions":[],"position":"site.yml:8:16"}]],"summary":{"unchanged":1},"removals":[],"left":[],"peer":"ssh-ed25519 SHA256:7Av3P33F/8+9f2gY6xYN+jHEikRoXL73J3HOzx7Odrk","owed":[],"facts":{"hostname":"light2","kernel":"6.18.44-fc-v669","architecture":"x86_64","os":{"id":"debian","version_id":"12","version_codename":"bookworm","pretty_name":"Debian GNU/Linux 12 (bookworm)"},"python":"3.11.2","cpus":2,"memory":24105,"init":"other","boot_id":"9f560230-16d4-4d75-a887-23d5e64c905d","machine_id":"5c6f2abca97cab2a7209ef085a678bc5","user":"root"},"ledger":"6eaff99587e046c7abb15a1e8a657d9c","fingerprints":{},"units":[{"unit":"b/0","service":"b","state":"started","hooks":[{"unit":"b/0","hook":"x-relation-joined","relation":"x:3","remote":"a/0","status":"ok","seconds":0.077},{"unit":"b/0","hook":"x-relation-changed","relation":"x:3","remote":"a/0","status":"ok","seconds":0.01},{"unit":"b/0","hook":"x-relation-changed","relation":"x:3","remote":"a/0","status":"ok","seconds":0.014}]},{"unit":"c/0","service":"c","state":"started","hooks":[]}]}');
INSERT INTO "run_host" VALUES('49e09dc07dcc','light1','ok','{"changed":1}','{"status":"ok","layers":[[{"name":"file:/srv/z.conf","type":"file","outcome":"changed","changes":[{"object":"/srv/z.conf","field":"kind","before":null,"after":"file"},{"object":"/srv/z.conf","field":"mode","before":null,"after":"0644"},{"object":"/srv/z.conf","field":"owner","before":null,"after":"root"},{"object":"/srv/z.conf","field":"group","before":null,"after":"root"},{"object":"/srv/z.conf","field":"content","before":null,"after":"sha256:594e519ae499312b29433b7dd8a97ff068defcba9755b6d5d00e84c524d67b06 (1 bytes)","diff":"--- /dev/null\n+++ /srv/z.conf\n@@ -0,0 +1 @@\n+z\n\\ No newline at end of file\n"}],"actions":[{"op":"write","args":{"path":"/srv/z.conf","content":"sha256:594e519ae499312b29433b7dd8a97ff068defcba9755b6d5d00e84c524d67b06 (1 bytes)"},"status":"ok"}],"position":"site.yml:4:16"}]],"summary":{"changed":1},"removals":[],"left":[],"peer":"ssh-ed25519 SHA256:VS8dh4J4NVpkMqpezd9IVN99neX1AQg+slGQ6a42cc0","owed":[],"facts":{"hostname":"light1","kernel":"6.18.44-fc-v669","architecture":"x86_64","os":{"id":"debian","version_id":"12","version_codename":"bookworm","pretty_name":"Debian GNU/Linux 12 (bookworm)"},"python":"3.11.2","cpus":2,"memory":24105,"init":"other","boot_id":"9f560230-16d4-4d75-a887-23d5e64c905d","machine_id":"12e94a356409bb14678b21f8d04cd134","user":"root"},"ledger":"baa4388bd7224ce1a39fa78148149478","fingerprints":{"file:/srv/z.conf":"4191db74fb6a8ccbbe12858736f56b58"},"units":[{"unit":"z/0","service":"z","state":"started","hooks":[{"unit":"z/0","hook":"install","status":"ok","seconds":0.032},{"unit":"z/0","hook":"config-changed","status":"ok","seconds":0.007},{"unit":"z/0","hook":"start","status":"ok","seconds":0.014}]}]}');
CREATE TABLE schema_version (
	one INTEGER NOT NULL CHECK (one = 1), 
	version INTEGER NOT NULL, 
	PRIMARY KEY (one)
);
INSERT INTO "schema_version" VALUES(1,2);
CREATE TABLE service (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
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
	timeout DOUBLE NOT NULL, 
	hosts TEXT NOT NULL, 
	without TEXT NOT NULL, 
	next INTEGER NOT NULL, 
	created DOUBLE NOT NULL, 
	UNIQUE (project, name)
);
INSERT INTO "service" VALUES(1,'shop','a','shop/site.yml',1,'a','86fa536b96218a2b17165b4320b98867667140d7b66e232458998651b79a15a4','{}','{}','{}','{}','526190f57f3d429f6cd695fd77f36e85','','{}',600.0,'["light1"]','{"hosts":[],"relations":[]}',2,1.7953432770844347477e+09);
INSERT INTO "service" VALUES(2,'shop','b','shop/site.yml',1,'b','86fa536b96218a2b17165b4320b98867667140d7b66e232458998651b79a15a4','{}','{}','{}','{}','7558b91e9cf21143dad74c494965ac8a','','{}',600.0,'["light2"]','{"hosts":[],"relations":[]}',1,1.7953432770844347477e+09);
INSERT INTO "service" VALUES(3,'shop','c','shop/site.yml',1,'c','86fa536b96218a2b17165b4320b98867667140d7b66e232458998651b79a15a4','{}','{}','{}','{}','615971ac720b72ba4c8c7cbaf4986a40','','{}',600.0,'["light2"]','{"hosts":[],"relations":[]}',1,1.7953432770844347477e+09);
INSERT INTO "service" VALUES(4,'blog','z','blog/site.yml',1,'z','cab28695a912c1a74c85da81d9faa79b7acbfb67f778b950218f58e38da5098c','{}','{}','{}','{}','95282f34eb4aa81284daeae0ecf85aba','','{}',600.0,'["light1"]','{"hosts":[],"relations":[]}',1,1.79534328706018424031e+09);
CREATE TABLE unit (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
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
	since DOUBLE NOT NULL, 
	UNIQUE (service, number), 
	FOREIGN KEY(service) REFERENCES service (id) ON DELETE CASCADE
);
INSERT INTO "unit" VALUES(1,1,0,'light1',0,0,0,'started','','','""','','86fa536b96218a2b17165b4320b98867667140d7b66e232458998651b79a15a4','6ab8b5a6588f029efd60a0460e4f5bb46edda75662eb6a51e2802eb2fc076718','{"private-address":"10.208.4.2","public-address":"10.208.4.2"}','[]','""','""',1.79534327729801034922e+09);
INSERT INTO "unit" VALUES(2,2,0,'light2',0,0,0,'started','','','""','','86fa536b96218a2b17165b4320b98867667140d7b66e232458998651b79a15a4','6ab8b5a6588f029efd60a0460e4f5bb46edda75662eb6a51e2802eb2fc076718','{"private-address":"10.208.4.3","public-address":"10.208.4.3"}','[]','""','""',1795343277.40381);
INSERT INTO "unit" VALUES(3,3,0,'light2',0,0,0,'started','','','""','','86fa536b96218a2b17165b4320b98867667140d7b66e232458998651b79a15a4','6ab8b5a6588f029efd60a0460e4f5bb46edda75662eb6a51e2802eb2fc076718','{"private-address":"10.208.4.3","public-address":"10.208.4.3"}','[]','""','""',1.79534327758984518048e+09);
INSERT INTO "unit" VALUES(4,4,0,'light1',0,0,0,'started','','','""','','cab28695a912c1a74c85da81d9faa79b7acbfb67f778b950218f58e38da5098c','6ab8b5a6588f029efd60a0460e4f5bb46edda75662eb6a51e2802eb2fc076718','{"private-address":"10.208.4.2","public-address":"10.208.4.2"}','[]','""','""',1.79534328716820311541e+09);
INSERT INTO "unit" VALUES(5,1,1,'light1',1,0,0,'new','','','""','','','','{}','[]','""','""',1.79534328864440107347e+09);
CREATE TABLE unit_event (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
	unit INTEGER NOT NULL, 
	relation INTEGER NOT NULL, 
	remote VARCHAR(300) NOT NULL, 
	op VARCHAR(16) NOT NULL, 
	FOREIGN KEY(unit) REFERENCES unit (id) ON DELETE CASCADE, 
	FOREIGN KEY(relation) REFERENCES relation (id) ON DELETE CASCADE
);
CREATE TABLE unit_log (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
	service INTEGER NOT NULL, 
	at DOUBLE NOT NULL, 
	unit VARCHAR(300) NOT NULL, 
	hook TEXT NOT NULL, 
	level INTEGER NOT NULL, 
	text TEXT NOT NULL, 
	FOREIGN KEY(service) REFERENCES service (id) ON DELETE CASCADE
);
INSERT INTO "unit_log" VALUES(1,1,1.79534327724167418476e+09,'a/0','"install"',10,'"hook install exited, exit code 0."');
INSERT INTO "unit_log" VALUES(2,1,1.79534327726970744133e+09,'a/0','"config-changed"',10,'"hook config-changed exited, exit code 0."');
INSERT INTO "unit_log" VALUES(3,1,1.7953432772976810932e+09,'a/0','"start"',10,'"hook start exited, exit code 0."');
INSERT INTO "unit_log" VALUES(4,2,1.79534327735274839405e+09,'b/0','"install"',10,'"hook install exited, exit code 0."');
INSERT INTO "unit_log" VALUES(5,2,1.79534327737917089465e+09,'b/0','"config-changed"',10,'"hook config-changed exited, exit code 0."');
INSERT INTO "unit_log" VALUES(6,2,1.79534327740378689764e+09,'b/0','"start"',10,'"hook start exited, exit code 0."');
INSERT INTO "unit_log" VALUES(7,2,1.7953432774837789535e+09,'b/0','"x-relation-joined"',10,'"hook x-relation-joined exited, exit code 0."');
INSERT INTO "unit_log" VALUES(8,2,1795343277.48379,'b/0','"x-relation-joined"',10,'"Flushed values for hook ''x-relation-joined'' on ''x:1''"');
INSERT INTO "unit_log" VALUES(9,2,1795343277.48379,'b/0','"x-relation-joined"',10,'"    Setting changed: ''of''=''b/0'' (was unset)"');
INSERT INTO "unit_log" VALUES(10,1,1.79534327750679969788e+09,'a/0','"x-relation-joined"',10,'"hook x-relation-joined exited, exit code 0."');
INSERT INTO "unit_log" VALUES(11,1,1.7953432775068147182e+09,'a/0','"x-relation-joined"',10,'"Flushed values for hook ''x-relation-joined'' on ''x:1''"');
INSERT INTO "unit_log" VALUES(12,1,1.7953432775068147182e+09,'a/0','"x-relation-joined"',10,'"    Setting changed: ''of''=''a/0'' (was unset)"');
INSERT INTO "unit_log" VALUES(13,2,1.79534327751575040815e+09,'b/0','"x-relation-changed"',10,'"hook x-relation-changed exited, exit code 0."');
INSERT INTO "unit_log" VALUES(14,2,1.79534327753088212013e+09,'b/0','"x-relation-changed"',10,'"hook x-relation-changed exited, exit code 0."');
INSERT INTO "unit_log" VALUES(15,1,1.79534327754122352603e+09,'a/0','"x-relation-changed"',10,'"hook x-relation-changed exited, exit code 0."');
INSERT INTO "unit_log" VALUES(16,3,1.7953432775550704002e+09,'c/0','"install"',10,'"hook install exited, exit code 0."');
INSERT INTO "unit_log" VALUES(17,3,1.79534327756744623181e+09,'c/0','"config-changed"',10,'"hook config-changed exited, exit code 0."');
INSERT INTO "unit_log" VALUES(18,3,1.79534327758981275555e+09,'c/0','"start"',10,'"hook start exited, exit code 0."');
INSERT INTO "unit_log" VALUES(19,1,1.79534327766966319084e+09,'a/0','"x-relation-joined"',10,'"hook x-relation-joined exited, exit code 0."');
INSERT INTO "unit_log" VALUES(20,1,1.79534327766967535021e+09,'a/0','"x-relation-joined"',10,'"Flushed values for hook ''x-relation-joined'' on ''x:2''"');
INSERT INTO "unit_log" VALUES(21,1,1.79534327766967535021e+09,'a/0','"x-relation-joined"',10,'"    Setting changed: ''of''=''a/0'' (was unset)"');
INSERT INTO "unit_log" VALUES(22,3,1.79534327769387078285e+09,'c/0','"x-relation-joined"',10,'"hook x-relation-joined exited, exit code 0."');
INSERT INTO "unit_log" VALUES(23,3,1.79534327769413924215e+09,'c/0','"x-relation-joined"',10,'"Flushed values for hook ''x-relation-joined'' on ''x:2''"');
INSERT INTO "unit_log" VALUES(24,3,1.79534327769413924215e+09,'c/0','"x-relation-joined"',10,'"    Setting changed: ''of''=''c/0'' (was unset)"');
INSERT INTO "unit_log" VALUES(25,1,1.79534327769426870348e+09,'a/0','"x-relation-changed"',10,'"hook x-relation-changed exited, exit code 0."');
INSERT INTO "unit_log" VALUES(26,1,1.79534327771258234978e+09,'a/0','"x-relation-changed"',10,'"hook x-relation-changed exited, exit code 0."');
INSERT INTO "unit_log" VALUES(27,3,1.79534327771669507023e+09,'c/0','"x-relation-changed"',10,'"hook x-relation-changed exited, exit code 0."');
INSERT INTO "unit_log" VALUES(28,1,1.79534327994288516044e+09,'a/0','"x-relation-departed"',10,'"hook x-relation-departed exited, exit code 0."');
INSERT INTO "unit_log" VALUES(29,1,1.79534327996623969082e+09,'a/0','"x-relation-broken"',10,'"hook x-relation-broken exited, exit code 0."');
INSERT INTO "unit_log" VALUES(30,2,1.79534327998701310159e+09,'b/0','"x-relation-departed"',10,'"hook x-relation-departed exited, exit code 0."');
INSERT INTO "unit_log" VALUES(31,2,1.79534328001426577567e+09,'b/0','"x-relation-broken"',10,'"hook x-relation-broken exited, exit code 0."');
INSERT INTO "unit_log" VALUES(32,2,1.7953432830116548538e+09,'b/0','"x-relation-joined"',10,'"hook x-relation-joined exited, exit code 0."');
INSERT INTO "unit_log" VALUES(33,2,1.79534328301167273519e+09,'b/0','"x-relation-joined"',10,'"Flushed values for hook ''x-relation-joined'' on ''x:3''"');
INSERT INTO "unit_log" VALUES(34,2,1.79534328301167273519e+09,'b/0','"x-relation-joined"',10,'"    Setting changed: ''of''=''b/0'' (was unset)"');
INSERT INTO "unit_log" VALUES(35,1,1.79534328305170559885e+09,'a/0','"x-relation-joined"',10,'"hook x-relation-joined exited, exit code 0."');
INSERT INTO "unit_log" VALUES(36,1,1.79534328305172133444e+09,'a/0','"x-relation-joined"',10,'"Flushed values for hook ''x-relation-joined'' on ''x:3''"');
INSERT INTO "unit_log" VALUES(37,1,1.79534328305172133444e+09,'a/0','"x-relation-joined"',10,'"    Setting changed: ''of''=''a/0'' (was unset)"');
INSERT INTO "unit_log" VALUES(38,2,1.79534328307201910017e+09,'b/0','"x-relation-changed"',10,'"hook x-relation-changed exited, exit code 0."');
INSERT INTO "unit_log" VALUES(39,1,1.79534328308622217183e+09,'a/0','"x-relation-changed"',10,'"hook x-relation-changed exited, exit code 0."');
INSERT INTO "unit_log" VALUES(40,2,1.79534328310740280156e+09,'b/0','"x-relation-changed"',10,'"hook x-relation-changed exited, exit code 0."');
INSERT INTO "unit_log" VALUES(41,4,1.79534328712685179712e+09,'z/0','"install"',10,'"hook install exited, exit code 0."');
INSERT INTO "unit_log" VALUES(42,4,1.79534328714142870902e+09,'z/0','"config-changed"',10,'"hook config-changed exited, exit code 0."');
INSERT INTO "unit_log" VALUES(43,4,1.79534328716817641259e+09,'z/0','"start"',10,'"hook start exited, exit code 0."');
CREATE INDEX ix_api_token_invocation ON api_token (invocation);
CREATE INDEX ix_commit_mark_at ON commit_mark (at);
CREATE INDEX ix_entity_grant_member ON entity_grant (member);
CREATE INDEX ix_entity_task_invocation ON entity_task (invocation);
CREATE INDEX ix_entity_task_entity ON entity_task (entity);
CREATE INDEX ix_entity_task_due ON entity_task (due);
CREATE INDEX ix_entity_task_status ON entity_task (status);
CREATE INDEX ix_entity_task_ended ON entity_task (ended);
CREATE INDEX ix_entity_task_parent ON entity_task (parent);
CREATE INDEX ix_run_started ON run (started);
CREATE INDEX entity_by_name ON entity (type, name);
CREATE INDEX entity_by_type ON entity (type, number);
CREATE INDEX entity_by_state ON entity (type, state);
CREATE INDEX entity_by_owner ON entity (org, owner);
CREATE INDEX ix_event_host ON event (host);
CREATE INDEX ix_event_hook ON event (hook);
CREATE INDEX ix_event_invocation ON event (invocation);
CREATE INDEX ix_invocation_hook ON invocation (hook);
CREATE INDEX ix_relation_other ON relation (other);
CREATE INDEX ix_relation_service ON relation (service);
CREATE INDEX ix_requeue_next ON requeue (next);
CREATE INDEX ix_run_host_host ON run_host (host);
CREATE INDEX ix_unit_host ON unit (host);
CREATE INDEX ix_unit_log_service ON unit_log (service);
CREATE INDEX ix_relation_unit_unit ON relation_unit (unit);
CREATE INDEX ix_unit_event_relation ON unit_event (relation);
CREATE INDEX ix_unit_event_unit ON unit_event (unit);
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('host',3);
INSERT INTO "sqlite_sequence" VALUES('service',4);
INSERT INTO "sqlite_sequence" VALUES('unit',5);
INSERT INTO "sqlite_sequence" VALUES('relation',3);
INSERT INTO "sqlite_sequence" VALUES('unit_log',43);
INSERT INTO "sqlite_sequence" VALUES('unit_event',12);
INSERT INTO "sqlite_sequence" VALUES('hook',1);
INSERT INTO "sqlite_sequence" VALUES('invocation',1);
INSERT INTO "sqlite_sequence" VALUES('event',1);
COMMIT;
