"The Borg document's macros: `(require statecfg.dialects.hy [defplay node-type …])`."

(import statecfg.dialects.forms [
  BadForm attribute-names op-options op-parameters method-name bind-words body-data clauses])
(import statecfg.remote.graph.borg [METHODS merge-graphs name spit slurp zipmap])
(import statecfg.remote.graph.predicates [
  some-fn map? true? false? nil? keyword? string? number? seq?])

(setv __all__ [
  "merge_graphs" "some_fn" "name" "spit" "slurp" "zipmap"
  #* (map hy.mangle ["map?" "true?" "false?" "nil?" "keyword?" "string?" "number?" "seq?"])])


(defmacro def [name value]
  "Name a value: `(def motd (file \"/etc/motd\" {…}))`."
  `(setv ~name ~value))


(defmacro node-type [name #* parts]
  "Define a node type: `(node-type NAME \"doc\"? :arguments […] :required-attrs […] :optional-attrs […] :produces-ops […])`."
  (setv parts (list parts)
        doc (when (and parts (isinstance (get parts 0) hy.models.String)) (.pop parts 0))
        sections {})
  (when (not (isinstance name hy.models.Symbol))
    (raise (BadForm "node-type needs a name" name)))
  (while parts
    (setv key (.pop parts 0))
    (when (not (isinstance key hy.models.Keyword))
      (raise (BadForm "node-type takes pairs of a keyword and a vector" key)))
    (when (not-in key.name ["arguments" "required-attrs" "optional-attrs" "produce-ops" "produces-ops"])
      (raise (BadForm (+ "node-type has no part " (str key)
                         "; it has :arguments :required-attrs :optional-attrs :produces-ops") key)))
    (when (or (not parts) (not (isinstance (get parts 0) hy.models.List)))
      (raise (BadForm (+ (str key) " needs a vector of names") key)))
    (setv (get sections key.name) (.pop parts 0)))
  (when (not (.get sections "arguments"))
    (raise (BadForm f"node type {name} needs :arguments, a vector of one name or more" name)))
  `(do
     (import statecfg.remote.graph.borg :as _borg)
     (setv ~name (_borg.node-type
       ~(str name)
       ~(list (attribute-names (get sections "arguments")))
       ~(list (attribute-names (.get sections "required-attrs" [])))
       ~(attribute-names (.get sections "optional-attrs" []) :defaults True)
       ~(list (attribute-names (.get sections "produces-ops" (.get sections "produce-ops" []))))
       __name__
       ~doc))))


(defmacro validator-maker [#* parts]
  "Define a validator: `(validator-maker (env map?))`. Functions after the predicate transform the value."
  (when (!= (len parts) 1)
    (raise (BadForm "validator-maker takes one (attribute predicate transform…); make-validators takes several"
                    (if parts (get parts 0) (hy.models.List)))))
  `(do
     (import statecfg.remote.graph.borg :as _borg)
     (_borg.make-validators __name__ ~(clauses parts))))


(defmacro make-validators [#* validators]
  "Define several validators: `(make-validators (env map?) (user (some-fn string? keyword?) name))`."
  `(do
     (import statecfg.remote.graph.borg :as _borg)
     (_borg.make-validators __name__ ~(clauses validators))))


(defmacro defnodefn [name parameters #* body]
  "Define a function, and `node-NAME`, which reads the same arguments from a node's attributes."
  `(do
     (import statecfg.remote.graph.borg :as _borg)
     (defn ~name ~parameters ~@body)
     (setv ~(hy.models.Symbol f"node-{name}") (_borg.node-function ~name ~(op-parameters parameters)))))


(defmacro defop [name #* parts]
  "Define an op: `(defop NAME \"doc\"? {options}? [parameters] body…)`, and `node-NAME`, which takes a node.

  In the body, `machine` is the machine that the op changes. `spit`, `slurp` and `sh` use it."
  (setv parts (list parts)
        doc (if (and parts (isinstance (get parts 0) hy.models.String)) [(.pop parts 0)] [])
        options (if (and parts (isinstance (get parts 0) hy.models.Dict)) (op-options (.pop parts 0)) {}))
  (when (not (isinstance name hy.models.Symbol))
    (raise (BadForm "defop needs a name" name)))
  (when (or (not parts) (not (isinstance (get parts 0) hy.models.List)))
    (raise (BadForm f"defop {name} needs a vector of parameters" (if parts (get parts 0) name))))
  (setv parameters (.pop parts 0))
  (when (not parts)
    (raise (BadForm f"defop {name} has no body" name)))
  `(do
     (import statecfg.remote.graph.borg :as _borg)
     (defn ~name [machine ~@parameters] ~@doc ~@(bind-words parameters parts) ~@parts)
     (setv ~name (_borg.make-op ~name ~(str name) ~(op-parameters parameters) ~(body-data parts) #** ~options)
           ~(hy.models.Symbol f"node-{name}") (. ~name node))))


(defmacro defmethod [method type-name parameters #* body]
  "Define a method of a node type: `(defmethod check-node process [node nodes actions] …)`, `to-wire`, `from-wire`."
  (setv name (method-name method))
  (when (not-in name METHODS)
    (raise (BadForm (+ f"node types have no method {method}; they have " (.join " " METHODS)) method)))
  (when (not (isinstance parameters hy.models.List))
    (raise (BadForm f"{method} needs a vector of parameters" parameters)))
  (when (not body)
    (raise (BadForm f"{method} of {type-name} has no body" method)))
  (setv function (hy.models.Symbol (+ name "-" (.replace (.strip (str type-name) ":\"") "." "-"))))
  `(do
     (import statecfg.remote.graph.borg :as _borg)
     (defn ~function ~parameters ~@body)
     (_borg.method ~(if (isinstance type-name hy.models.Keyword) type-name.name type-name) ~name ~function)))


(defmacro defplay [name #* parts]
  "Define a play: `(defplay NAME \"doc\"? [host] {:hosts \"web\" :vars {…}} body…)`. It returns the value of its last form."
  (setv parts (list parts)
        doc (if (and parts (isinstance (get parts 0) hy.models.String)) [(.pop parts 0)] []))
  (when (not (isinstance name hy.models.Symbol))
    (raise (BadForm "defplay needs a name" name)))
  (when (or (not parts) (not (isinstance (get parts 0) hy.models.List)))
    (raise (BadForm f"defplay {name} needs a vector with one parameter, the host" (if parts (get parts 0) name))))
  (setv parameters (.pop parts 0))
  (when (or (not parts) (not (isinstance (get parts 0) hy.models.Dict)))
    (raise (BadForm f"defplay {name} needs a map with :hosts after its parameters" (if parts (get parts 0) name))))
  (setv options (.pop parts 0))
  (when (not parts)
    (raise (BadForm f"defplay {name} has no body, so it would return nothing" name)))
  `(do
     (import statecfg.playbook.plays :as _plays)
     (defn [(_plays.play #** (_plays.written-options ~options))] ~name ~parameters ~@doc ~@parts)))


(defmacro defservice [name #* parts]
  "Define a service: `(defservice db \"doc\"? [host] {:hosts \"db1\" :charm \"../charms/db\"} body…)`. The body is optional."
  (setv parts (list parts)
        doc (if (and parts (isinstance (get parts 0) hy.models.String)) [(.pop parts 0)] []))
  (when (not (isinstance name hy.models.Symbol))
    (raise (BadForm "defservice needs a name" name)))
  (when (or (not parts) (not (isinstance (get parts 0) hy.models.List)))
    (raise (BadForm f"defservice {name} needs a vector with one parameter, the host" (if parts (get parts 0) name))))
  (setv parameters (.pop parts 0))
  (when (or (not parts) (not (isinstance (get parts 0) hy.models.Dict)))
    (raise (BadForm f"defservice {name} needs a map with :hosts after its parameters" (if parts (get parts 0) name))))
  (setv options (.pop parts 0))
  `(do
     (import statecfg.playbook.plays :as _plays)
     (import statecfg.playbook.services :as _services)
     (defn [(_services.deploy #** (_plays.written-options ~options _services.OPTIONS "service"))]
       ~name ~parameters ~@doc ~@(or parts ['None]))))
