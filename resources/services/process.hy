"Processes: programs that run in the background, or once to their end."

(require statecfg.dialects.hy [node-type make-validators defop defmethod])
(import statecfg.dialects.hy [map? seq? some-fn true? false? nil? string? keyword? name])
(import json sys)
(import statecfg.resources.services [processes])
(import statecfg.remote.graph.model [ActionSpec])
(import statecfg.remote.machine.changes [secretive])


(node-type process
  "Manage a process: a program that runs with these arguments, as this user, in this environment.

  statecfg starts the process in the background, detached from the run, and keeps a record of it. If the process runs
  with other arguments, another user or another environment than recorded at its last start, or if a node in
  `restart_on` changes, statecfg stops it before anything else is done (`service-down`, its shutdown-first action) and
  starts it again when its turn comes (`ensure-running`). A process that statecfg did not start also counts if its
  program, arguments and user are the same. With `block?`, the program runs once, to its end, and must end with exit
  status 0. It runs again when its attributes change.

  Undo: statecfg stops a process that did not run before, and starts a process that it stopped. The results of a program
  that ran once stay.

  :param pathname: absolute path of the program
  :param user: the user who runs it
  :param group: the group that it runs as
  :param env: its environment, in addition to PATH, LANG and HOME; values may be secrets
  :param args: its arguments
  :param block?: run it once, to its end, for at most 600 seconds
  :param absent: the process must not run; a running process is stopped"
  :arguments [pathname]
  :required-attrs [user group env args]
  :optional-attrs [block? absent]
  :produces-ops [service-down ensure-running])

(make-validators
  (pathname (some-fn string?) processes.absolute)
  (user (some-fn string? keyword?) name)
  (group (some-fn string? keyword?) name)
  (env map? processes.texts)
  (args seq? processes.words)
  (block? (some-fn true? false? nil?))
  (absent (some-fn true? false? nil?)))


(defop service-down
  "Stop a process: TERM, then KILL after ten seconds."
  [process pid]
  (.run machine processes.LAUNCHER
        :input (.encode (json.dumps {"do" "stop" "key" process "pid" pid "directory" (processes.directory)}))
        :effect {"processes" {process None}}))


(defop ensure-running
  "Start a process in the background; with `block?` run it to its end."
  [process pathname args env user group block? secret]
  (setv fields (processes.fields pathname args env user group block? secret))
  (.run machine processes.LAUNCHER
        :input (.encode (json.dumps {"do" (if block? "once" "start") "key" process "directory" (processes.directory)
                                     "env" env "fields" fields}))
        :effect {"processes" {process fields}}))


(defn wanted [node]
  "Return the fields of the process that the node asks for."
  (setv attrs (:attrs node))
  (processes.fields (:pathname attrs) (:args attrs) (:env attrs) (:user attrs) (:group attrs) (:block? attrs)
                     (in "env" node.hides)))


(defn start-action [node block?]
  "Return the action that starts the node's process."
  (setv attrs (:attrs node))
  (ensure-running (:provides node) (:pathname attrs) (list (:args attrs)) (dict (:env attrs)) (:user attrs)
                  (:group attrs) block? (or (in "env" node.hides) None)))


(defmethod identity process [attrs name]
  "Identify the program with its arguments and user, and the record of the process, which has the node's name."
  [(.join " " ["process:" (:user attrs) (:pathname attrs) #* (:args attrs)]) (+ "process record:" name)])


(defmethod check-node process [node world]
  "Compare the node's process with the wanted one."
  (setv attrs (:attrs node)
        key (:provides node)
        should (wanted node)
        now (processes.find (.facet world "processes") key should))
  (when (:absent attrs)
    (return (if now [(service-down key (:pid now))] [])))
  (processes.require-program world (:pathname attrs))
  (setv start (start-action node (bool (:block? attrs))))
  (cond
    (is now None) [start]
    (and (processes.same now should) (not world.triggered-by)) []
    (:running now) {:actions [start] :shutdown-first (service-down key (:pid now))}
    True [start]))


(defmethod remember process [node world]
  "Record whether the process runs."
  (setv key (:provides node))
  {"key" key
   "running" (is-not (processes.find (.facet world "processes") key (wanted node)) None)})


(defmethod undo process [node memory world]
  "Stop a process that did not run before, or start one that the node stopped."
  (setv attrs (:attrs node)
        key (get memory "key")
        running (get memory "running")
        now (.facet world "processes"))
  (cond
    (not (:absent attrs)) (if (and (not running) (in key now)) [(service-down key (.get (get now key) "pid"))] [])
    (or (not running) (:block? attrs) (is-not (processes.find now key (wanted node)) None)) []
    (secretive attrs) (ActionSpec :left [f"{key} is not started again: that takes a secret, and none is kept"])
    True [(start-action node False)]))
