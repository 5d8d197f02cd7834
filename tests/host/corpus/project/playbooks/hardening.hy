"The kernel's and PAM's settings of a hardened host: network parameters, modules, limits, passwords, umask, cron, units.

With `whole-kernel`, modules are blocked, swap is turned off and settings outside net.* are written as well: these are
of the machine, not of one container, so the tests only plan and validate that."

(require statecfg.dialects.hy [defplay])
(import statecfg [label])
(import statecfg.resources [directory file group ini-key kernel-module limits line-in-file mount package service swap
                            sysctl systemd-unit user])

(setv NETWORK {"net.ipv4.conf.all.rp_filter" 1
               "net.ipv4.conf.all.accept_redirects" 0
               "net.ipv4.conf.all.secure_redirects" 0
               "net.ipv4.conf.all.log_martians" 1
               "net.ipv4.conf.all.accept_source_route" 0
               "net.ipv4.icmp_echo_ignore_broadcasts" 1
               "net.ipv4.tcp_syncookies" 1
               "net.ipv4.tcp_rfc1337" 1
               "net.ipv6.conf.all.accept_ra" 0})
(setv WHOLE {"kernel.randomize_va_space" 2 "kernel.kptr_restrict" 2 "kernel.dmesg_restrict" 1 "fs.suid_dumpable" 0})
(setv MODULES ["cramfs" "freevxfs" "dccp" "rds" "tipc"])
(setv LOGIN {"UMASK" "027" "PASS_MAX_DAYS" "365" "PASS_MIN_DAYS" "1" "LOGIN_RETRIES" "3" "LOGIN_TIMEOUT" "60"})
(setv CRON ["/etc/cron.d" "/etc/cron.daily" "/etc/cron.weekly" "/etc/cron.monthly"])

(defn lines-of [path values]
  (lfor [name value] (.items values)
        (line-in-file path {:line f"{name} {value}" :match f"^#?\\s*{name}\\s" :provides f"{path} {name}"})))

(defn settings-of [values path]
  (lfor [name value] (.items values) (sysctl name {:value value :path path})))

(defplay hardening [host] {:hosts "all"
                           :vars {"whole_kernel" False "minimum" 14 "classes" 3 "remember" 8 "deny" 5
                                  "unlock_seconds" 900 "idle_seconds" 900 "wheel" ["root"]}}
  (setv
    pwquality (package "libpam-pwquality")
    quality (file "/etc/security/pwquality.conf" {:template "hardening/pwquality.conf.j2" :mode "0644"
                                                  :requires [pwquality]})
    faillock (file "/etc/security/faillock.conf" {:template "hardening/faillock.conf.j2" :mode "0644"})
    no-dumps (limits "10-hardening" {:domain "*" :hard {"core" 0 "nproc" 8192} :soft {"nproc" 4096}})
    root-limits (limits "20-root" {:domain "root" :hard {"nproc" "unlimited"}})
    history (line-in-file "/etc/pam.d/common-password"
                          {:line f"password required pam_pwhistory.so remember={host.vars.remember} use_authtok"
                           :match "pam_pwhistory\\.so" :before "pam_unix\\.so" :requires [pwquality]
                           :provides "password-history"})
    wheel (group "wheel" {:system True :members (:wheel host.vars)})
    su (line-in-file "/etc/pam.d/su" {:line "auth required pam_wheel.so group=wheel"
                                      :match "^#?\\s*auth\\s+required\\s+pam_wheel\\.so" :requires [wheel]})
    su-mode (file "/bin/su" {:mode "4750" :group "wheel" :follow True :requires [wheel]})
    profile (file "/etc/profile.d/hardening.sh" {:template "hardening/profile.sh.j2" :mode "0644"})
    dumps (directory "/etc/systemd/coredump.conf.d")
    coredump (file "/etc/systemd/coredump.conf.d/off.conf"
                   {:content "[Coredump]\nStorage=none\nProcessSizeMax=0\n" :mode "0644" :requires [dumps]})
    journal (with [_ (label "journal")]
              (lfor [key value] (.items {"SystemMaxUse" "200M" "ForwardToSyslog" "no"})
                    (ini-key "/etc/systemd/journald.conf" {:section "Journal" :key key :value value
                                                           :provides f"journald {key}"})))
    journald (service "systemd-journald" {:running True :restart-on ["loop:journal"]})
    reset (service "ctrl-alt-del.target" {:masked True})
    console (file "/etc/securetty" {:content "tty1\n" :mode "0600"})
    cron-allow (file "/etc/cron.allow" {:content "root\n" :mode "0640" :group "crontab"})
    at-deny (file "/etc/at.deny" {:absent True})
    crontab (file "/etc/crontab" {:mode "0600" :owner "root" :group "root"})
    shadow (file "/etc/shadow" {:mode "0640" :owner "root" :group "shadow"})
    games (user "games" {:shell "/usr/sbin/nologin"})
    root-home (directory "/root" {:mode "0700"})
    gone (lfor name ["telnet" "rsh-client" "nis" "talk"] (package name {:absent True :purge True})))
  [quality faillock no-dumps root-limits history su su-mode profile coredump #* journal journald reset console cron-allow
   at-deny crontab shadow games root-home #* (settings-of NETWORK "/etc/sysctl.d/80-network.conf") #* gone
   #* (lines-of "/etc/login.defs" LOGIN)
   #* (lfor path CRON (directory path {:mode "0700" :owner "root" :group "root"}))
   #* (if (:whole-kernel host.vars)
          [(swap "/swapfile" {:absent True})
           (mount "/dev/shm" {:source "tmpfs" :fstype "tmpfs" :mount-options ["noexec" "nosuid" "nodev"]})
           #* (lfor name MODULES (kernel-module name {:blocked True}))
           #* (settings-of WHOLE "/etc/sysctl.d/81-kernel.conf")]
          [])])
