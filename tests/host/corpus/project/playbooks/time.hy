"Time: chrony with a key for its servers instead of systemd-timesyncd, the time zone, and a helper for its logs.

With `set-clock`, the clock is set as well; that is of the machine, not of one container."

(require statecfg.dialects.hy [defplay])
(import statecfg [secret])
(import statecfg.resources [command cron directory file group host-entry logrotate package service systemd-unit
                            timezone user])

(defplay clock [host] {:hosts "all"
                       :vars {"servers" ["192.0.2.10" "192.0.2.11" "192.0.2.12"]
                              "pool" ""
                              "allow" ["10.0.0.0/8"]
                              "zone" "Europe/Berlin"
                              "daemon_options" "-F 1 -x"
                              "set_clock" False}}
  (setv
    tzdata (package "tzdata")
    zone (timezone host.vars.zone {:requires [tzdata]})
    ;; Debian lets only one package set the clock.
    other (package "systemd-timesyncd" {:absent True})
    defaults (file "/etc/default/chrony" {:content f"DAEMON_OPTS=\"{host.vars.daemon-options}\"\n" :mode "0644"})
    chrony (package "chrony" {:requires [other defaults]})
    conf (file "/etc/chrony/chrony.conf" {:template "time/chrony.conf.j2" :mode "0644" :requires [chrony]})
    sources (directory "/etc/chrony/sources.d" {:mode "0755" :requires [chrony]})
    servers (lfor [number address] (enumerate (:servers host.vars) 1)
                  (file f"/etc/chrony/sources.d/server{number}.sources"
                        {:content f"server {address} iburst key 1\n" :mode "0644" :requires [sources]}))
    extra (directory "/etc/chrony/conf.d" {:mode "0755" :requires [chrony]})
    access (file "/etc/chrony/conf.d/access.conf" {:template "time/access.conf.j2" :mode "0644" :requires [extra]})
    logs (file "/etc/chrony/conf.d/logs.conf"
               {:content "logdir /var/log/chrony\nlog tracking statistics\nlogchange 0.5\n" :mode "0644"
                :requires [extra]})
    log-directory (directory "/var/log/chrony" {:mode "0750" :owner "_chrony" :group "_chrony" :requires [chrony]})
    keys (file "/etc/chrony/chrony.keys"
               {:template "time/chrony.keys.j2" :vars {"key" (secret "chrony-key" :env "CORPUS_CHRONY_KEY")}
                :mode "0640" :owner "root" :group "_chrony" :requires [chrony]})
    dropin (systemd-unit "chrony" {:drop-in "restart" :requires [chrony]
                                   :sections {"Service" {"Restart" "on-failure" "RestartSec" 5}}})
    resolver (host-entry "192.0.2.10" {:names ["time1.example.test"]})
    rotation-tool (package "logrotate")
    rotation (logrotate "chrony" {:paths ["/var/log/chrony/*.log"] :requires [chrony rotation-tool]
                                  :directives ["monthly" "rotate 6" "missingok" "nocreate" "sharedscripts"]
                                  :scripts {"postrotate" "chronyc cyclelogs >/dev/null 2>&1 || true"}})
    watchers (group "timewatch" {:system True})
    watcher (user "timewatch" {:system True :group "timewatch" :shell "/usr/sbin/nologin" :home "/nonexistent"
                               :requires [watchers]})
    script (file "/usr/local/bin/clock-offset"
                 {:content "#!/bin/sh\nexec chronyc -c tracking | cut -d, -f5\n" :mode "0755"})
    job (cron "clock-offset" {:schedule "*/5 * * * *" :user "timewatch" :requires [script watcher]
                              :command "/usr/local/bin/clock-offset >/dev/null 2>&1"})
    old (package "ntp" {:absent True})
    old-conf (file "/etc/ntp.conf" {:absent True :requires [old]})
    settings [conf #* servers access logs keys defaults dropin])
  [zone resolver rotation job old-conf
   (service "chrony" {:running True :enabled True :requires [log-directory] :restart-on settings})
   ;; Exceptions: no node type sets the clock, because it has no state that a plan could compare.
   #* (if (:set-clock host.vars)
          [(command "set-hardware-clock" {:argv ["hwclock" "--systohc" "--utc"] :effects {} :requires [chrony]})
           (command "step-clock" {:argv ["chronyc" "makestep"] :effects {} :requires [chrony]})]
          [])])
