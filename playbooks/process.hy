"A program kept running in the background, with its arguments and environment, under a user of its own.

Change an argument and apply again: the old one is stopped before anything else is done, the new one started."

(require statecfg.dialects.hy [defplay])
(import statecfg.resources [directory file process])

(defplay ticker [host] {:hosts "@local" :vars {"root" "/tmp/statecfg-ticker" "user" "root" "group" "root" "seconds" "60"}}
  (setv root (:root host.vars)
        home (directory root {:mode "0755"})
        script (file f"{root}/ticker.sh"
                     {:mode "0755" :requires [home]
                      :content "#!/bin/sh\nwhile :; do date > \"$TICKER_FILE\"; sleep \"$1\"; done\n"}))
  (process "/bin/sh" {:provides :ticker
                      :user (:user host.vars)
                      :group (:group host.vars)
                      :env {"TICKER_FILE" f"{root}/tick"}
                      :args [f"{root}/ticker.sh" (str (:seconds host.vars))]
                      :restart-on [script]}))
