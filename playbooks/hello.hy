"Says hello: a directory with a file, a link, a line in a file, and a page made from a template.

The same definition as hello.py and hello.yml. Try: statecfg plan playbooks/hello.hy -e root=/tmp/elsewhere"

(require statecfg.dialects.hy [defplay])
(import statecfg.resources [directory file line-in-file symlink])

(defplay hello [host] {:hosts "@local" :vars {"root" "/tmp/statecfg-hello" "who" "world"}}
  (setv root (:root host.vars)
        home (directory root {:mode "0755"})
        greeting (file f"{root}/greeting.txt"
                       {:content "Hello from statecfg.\n" :mode "0644" :requires [home]}))
  [greeting
   (symlink f"{root}/latest" {:target "greeting.txt" :requires [greeting]})
   (line-in-file f"{root}/settings.ini" {:line "greeting = enabled" :create True :requires [home]})
   (file f"{root}/index.html" {:template "hello.html.j2" :vars {"who" (:who host.vars)} :requires [home]})])
