"The kernel's and PAM's settings of a hardened host: network parameters, modules, limits, passwords, umask, cron, units.

With `whole-kernel`, modules are unloaded, swap is turned off and settings outside net.* are written as well: these are
of the machine, not of one container, so the tests only plan and validate that."

(require statecfg.dialects.hy [defplay])
(import statecfg.resources [command directory file group line-in-file package service user])

;; Each setting with its value and the kernel's default, which undoing it restores.
(setv NETWORK {"net.ipv4.conf.all.rp_filter" [1 0]
               "net.ipv4.conf.all.accept_redirects" [0 1]
               "net.ipv4.conf.all.secure_redirects" [0 1]
               "net.ipv4.conf.all.log_martians" [1 0]
               "net.ipv4.conf.all.accept_source_route" [0 0]
               "net.ipv4.icmp_echo_ignore_broadcasts" [1 1]
               "net.ipv4.tcp_syncookies" [1 1]
               "net.ipv4.tcp_rfc1337" [1 0]
               "net.ipv6.conf.all.accept_ra" [0 1]})
(setv WHOLE {"kernel.randomize_va_space" [2 2]
             "kernel.kptr_restrict" [2 0]
             "kernel.dmesg_restrict" [1 0]
             "fs.suid_dumpable" [0 0]})
(setv MODULES ["cramfs" "dccp" "rds" "sctp" "tipc" "usb-storage"])
(setv LOGIN {"UMASK" "027" "PASS_MAX_DAYS" "365" "PASS_MIN_DAYS" "1" "LOGIN_RETRIES" "3" "LOGIN_TIMEOUT" "60"})
(setv CRON ["/etc/cron.d" "/etc/cron.daily" "/etc/cron.weekly" "/etc/cron.monthly"])

(defn setting [key value default where]
  (command f"set-{key}"
           {:argv ["sysctl" "-q" "-w" f"{key}={value}"]
            :unless f"test \"$(sysctl -n {key})\" = {value}"
            :undo ["sysctl" "-q" "-w" f"{key}={default}"]
            :effects {} :requires [where]}))

(defn lines-of [path values]
  (lfor [name value] (.items values)
        (line-in-file path {:line f"{name} {value}" :match f"^#?\\s*{name}\\s" :provides f"{path} {name}"})))

(defplay hardening [host] {:hosts "all"
                           :vars {"whole_kernel" False "minimum" 14 "classes" 3 "remember" 8 "deny" 5
                                  "unlock_seconds" 900 "idle_seconds" 900 "wheel" ["root"] "network" NETWORK}}
  (setv
    pwquality (package "libpam-pwquality")
    quality (file "/etc/security/pwquality.conf" {:template "hardening/pwquality.conf.j2" :mode "0644"
                                                  :requires [pwquality]})
    faillock (file "/etc/security/faillock.conf" {:template "hardening/faillock.conf.j2" :mode "0644"})
    limits (file "/etc/security/limits.d/10-hardening.conf"
                 {:content "* hard core 0\n* soft nproc 4096\n* hard nproc 8192\nroot hard nproc unlimited\n"
                  :mode "0644"})
    history (line-in-file "/etc/pam.d/common-password"
                          {:line f"password required pam_pwhistory.so remember={host.vars.remember} use_authtok"
                           :match "pam_pwhistory\\.so" :before "pam_unix\\.so" :requires [pwquality]
                           :provides "password-history"})
    wheel (group "wheel" {:system True :members (:wheel host.vars)})
    su (line-in-file "/etc/pam.d/su" {:line "auth required pam_wheel.so group=wheel"
                                      :match "^#?\\s*auth\\s+required\\s+pam_wheel\\.so" :requires [wheel]})
    su-mode (file "/bin/su" {:mode "4750" :group "wheel" :follow True :requires [wheel]})
    network (file "/etc/sysctl.d/80-network.conf" {:template "hardening/sysctl.conf.j2" :mode "0644"})
    parameters (lfor [key [value default]] (.items NETWORK) (setting key value default network))
    modules (file "/etc/modprobe.d/hardening.conf" {:template "hardening/modprobe.conf.j2"
                                                    :vars {"modules" MODULES} :mode "0644"})
    profile (file "/etc/profile.d/hardening.sh" {:template "hardening/profile.sh.j2" :mode "0644"})
    dumps (directory "/etc/systemd/coredump.conf.d")
    no-dumps (file "/etc/systemd/coredump.conf.d/off.conf"
                   {:content "[Coredump]\nStorage=none\nProcessSizeMax=0\n" :mode "0644" :requires [dumps]})
    journal-d (directory "/etc/systemd/journald.conf.d")
    journal (file "/etc/systemd/journald.conf.d/size.conf"
                  {:content "[Journal]\nSystemMaxUse=200M\nForwardToSyslog=no\n" :mode "0644" :requires [journal-d]})
    journald (service "systemd-journald" {:running True :restart-on [journal]})
    reset (service "ctrl-alt-del.target" {:masked True})
    console (file "/etc/securetty" {:content "tty1\n" :mode "0600"})
    cron-allow (file "/etc/cron.allow" {:content "root\n" :mode "0640" :group "crontab"})
    at-deny (file "/etc/at.deny" {:absent True})
    crontab (file "/etc/crontab" {:mode "0600" :owner "root" :group "root"})
    shadow (file "/etc/shadow" {:mode "0640" :owner "root" :group "shadow"})
    games (user "games" {:shell "/usr/sbin/nologin"})
    root-home (directory "/root" {:mode "0700"})
    gone (lfor name ["telnet" "rsh-client" "nis" "talk"] (package name {:absent True :purge True})))
  [quality faillock limits history su su-mode modules profile no-dumps journald reset console cron-allow at-deny crontab
   shadow games root-home #* parameters #* gone #* (lines-of "/etc/login.defs" LOGIN)
   #* (lfor path CRON (directory path {:mode "0700" :owner "root" :group "root"}))
   #* (if (:whole-kernel host.vars)
          [(command "swap-off" {:argv ["swapoff" "-a"] :onlyif "test $(wc -l </proc/swaps) -gt 1" :effects {}})
           (command "shared-memory" {:argv ["mount" "-o" "remount,noexec,nosuid,nodev" "/dev/shm"] :effects {}
                                     :unless "findmnt -no OPTIONS /dev/shm | grep -q noexec"})
           #* (lfor name MODULES (command f"unload-{name}" {:argv ["modprobe" "-r" name] :effects {}
                                                            :onlyif f"grep -q '^{name}' /proc/modules"}))
           #* (lfor [key [value default]] (.items WHOLE) (setting key value default network))]
          [])])
