"A web server: two sites, one of them on TLS with a protected area, a status page, and log rotation.

nginx is reloaded when its configuration changes, after it has accepted all of it."

(require statecfg.dialects.hy [defplay])
(import statecfg [label secret])
(import statecfg.resources [assertion directory file group logrotate package service symlink systemd-unit
                            tls-certificate tls-key user])

(setv SITES [{"name" "shop" "port" 8443 "tls" True "title" "The shop"}
             {"name" "blog" "port" 8080 "tls" False "title" "The blog"}])
(setv PARTS ["gzip" "headers" "limits" "logging" "status" "upstreams"])

(defplay nginx [host] {:hosts "all"
                       :vars {"workers" 2 "worker_connections" 1024 "root" "/srv/www" "server_name" "example.test"
                              "upstreams" {"app" ["127.0.0.1:9001" "127.0.0.1:9002"]}
                              "rotate_weeks" 8}}
  (setv root (:root host.vars)
        web {:owner "webeditor" :group "webeditors"}
        nginx (package "nginx")
        openssl (package "openssl")
        editors (group "webeditors" {:system True})
        editor (user "webeditor" {:system True :group "webeditors" :home root :shell "/usr/sbin/nologin"})
        top (directory root {:mode "2755" #** web})
        tls (directory "/etc/nginx/tls" {:mode "0750" :group "www-data" :requires [nginx]})
        key (tls-key "/etc/nginx/tls/site.key" {:mode "0640" :group "www-data" :requires [tls openssl]})
        certificate (tls-certificate "/etc/nginx/tls/site.crt" {:key "/etc/nginx/tls/site.key" :days 90
                                                                :names [host.vars.server-name] :requires [key]})
        passwords (file "/etc/nginx/htpasswd"
                        {:content (secret "htpasswd" :env "CORPUS_HTPASSWD") :mode "0640" :group "www-data"
                         :requires [nginx]})
        default (symlink "/etc/nginx/sites-enabled/default" {:absent True :requires [nginx]})
        limits (systemd-unit "nginx" {:drop-in "limits"
                                      :sections {"Service" {"LimitNOFILE" 65536 "Restart" "on-failure"}}})
        rotation (logrotate "nginx" {:paths ["/var/log/nginx/*.log"] :requires [nginx]
                                     :directives ["weekly" f"rotate {host.vars.rotate-weeks}" "missingok" "compress"
                                                  "notifempty" "create 0640 www-data adm" "sharedscripts"]
                                     :scripts {"postrotate" "systemctl kill --signal=USR1 nginx.service"}})
        logs (directory "/var/log/nginx" {:mode "0750" :owner "www-data" :group "adm" :requires [nginx]})
        settings [certificate passwords default
                  (file "/etc/nginx/nginx.conf" {:template "nginx/nginx.conf.j2" :mode "0644" :requires [nginx]})
                  (file "/etc/nginx/snippets/tls.conf" {:template "nginx/tls.conf.j2" :mode "0644" :requires [nginx]})
                  #* (lfor part PARTS
                           (file f"/etc/nginx/conf.d/{part}.conf"
                                 {:template f"nginx/{part}.conf.j2" :mode "0644" :requires [nginx]}))]
        pages [])
  (with [_ (label "sites")]
    (for [site SITES]
      (setv name (get site "name"))
      (+= pages [(directory f"{root}/{name}" {:mode "2755" #** web})
                 (file f"{root}/{name}/index.html"
                       {:template "nginx/index.html.j2" :vars {"site" site} :mode "0644" #** web})
                 (file f"{root}/{name}/robots.txt"
                       {:content "User-agent: *\nDisallow: /private/\n" :mode "0644" #** web})])
      (+= settings [(file f"/etc/nginx/sites-available/{name}"
                          {:template "nginx/site.conf.j2" :vars {"site" site} :mode "0644" :requires [nginx]})
                    (symlink f"/etc/nginx/sites-enabled/{name}"
                             {:target f"../sites-available/{name}"
                              :requires [f"file:/etc/nginx/sites-available/{name}"]})])))
  [#* pages rotation editors editor top
   (assertion "nginx-is-valid" {:command ["nginx" "-t" "-q"] :requires [#* settings logs]})
   (service "nginx" {:running True :enabled True :on-change "reload"
                     :requires ["assertion:nginx-is-valid" logs limits] :restart-on settings})])
