"A web server: two sites, one of them on TLS with a protected area, a status page, and log rotation.

nginx is reloaded when its configuration changes and restarted when its unit's limits change."

(require statecfg.dialects.hy [defplay])
(import statecfg [secret])
(import statecfg.resources [command directory file group package service symlink user])

(setv SITES [{"name" "shop" "port" 8443 "tls" True "title" "The shop"}
             {"name" "blog" "port" 8080 "tls" False "title" "The blog"}])
(setv PARTS ["gzip" "headers" "limits" "logging" "upstreams"])

(defplay nginx [host] {:hosts "all"
                       :vars {"workers" 2 "worker_connections" 1024 "root" "/srv/www" "server_name" "example.test"
                              "upstreams" {"app" ["127.0.0.1:9001" "127.0.0.1:9002"]}
                              "rotate_weeks" 8}}
  (setv root (:root host.vars)
        nginx (package "nginx")
        openssl (package "openssl")
        editors (group "webeditors" {:system True})
        editor (user "webeditor" {:system True :group "webeditors" :home root :shell "/usr/sbin/nologin"
                                  :requires [editors]})
        top (directory root {:owner "webeditor" :group "webeditors" :mode "2755" :requires [editor]})
        main (file "/etc/nginx/nginx.conf" {:template "nginx/nginx.conf.j2" :mode "0644" :requires [nginx]})
        parts (lfor part PARTS
                    (file f"/etc/nginx/conf.d/{part}.conf"
                          {:template f"nginx/{part}.conf.j2" :mode "0644" :requires [nginx]}))
        tls (directory "/etc/nginx/tls" {:mode "0750" :group "www-data" :requires [nginx]})
        certificate (command "certificate"
                             {:argv ["openssl" "req" "-x509" "-newkey" "ec" "-pkeyopt" "ec_paramgen_curve:prime256v1"
                                     "-nodes" "-days" "30" "-subj" "/CN=example.test"
                                     "-keyout" "/etc/nginx/tls/site.key" "-out" "/etc/nginx/tls/site.crt"]
                              :creates "/etc/nginx/tls/site.crt"
                              :effects {"files" ["/etc/nginx/tls/site.key" "/etc/nginx/tls/site.crt"]}
                              :undo ["rm" "-f" "/etc/nginx/tls/site.key" "/etc/nginx/tls/site.crt"]
                              :requires [tls openssl]})
        key-mode (file "/etc/nginx/tls/site.key" {:mode "0640" :group "www-data" :requires [certificate]})
        snippet (file "/etc/nginx/snippets/tls.conf" {:template "nginx/tls.conf.j2" :mode "0644" :requires [nginx]})
        passwords (file "/etc/nginx/htpasswd"
                        {:content (secret "htpasswd" :env "CORPUS_HTPASSWD") :mode "0640" :group "www-data"
                         :requires [nginx]})
        default (symlink "/etc/nginx/sites-enabled/default" {:absent True :requires [nginx]})
        status (file "/etc/nginx/conf.d/status.conf" {:template "nginx/status.conf.j2" :mode "0644" :requires [nginx]})
        dropins (directory "/etc/systemd/system/nginx.service.d")
        limits (file "/etc/systemd/system/nginx.service.d/limits.conf"
                     {:content "[Service]\nLimitNOFILE=65536\nRestart=on-failure\n" :mode "0644" :requires [dropins]})
        rotation (file "/etc/logrotate.d/nginx" {:template "nginx/logrotate.j2" :mode "0644" :requires [nginx]})
        logs (directory "/var/log/nginx" {:mode "0750" :owner "www-data" :group "adm" :requires [nginx]})
        pages [] enabled [] available [])
  (for [site SITES]
    (setv name (get site "name")
          home (directory f"{root}/{name}" {:owner "webeditor" :group "webeditors" :mode "2755" :requires [top]})
          conf (file f"/etc/nginx/sites-available/{name}"
                     {:template "nginx/site.conf.j2" :vars {"site" site} :mode "0644" :requires [nginx snippet]}))
    (.append pages (file f"{root}/{name}/index.html"
                         {:template "nginx/index.html.j2" :vars {"site" site} :owner "webeditor" :group "webeditors"
                          :mode "0644" :requires [home]}))
    (.append pages (file f"{root}/{name}/robots.txt"
                         {:content "User-agent: *\nDisallow: /private/\n" :owner "webeditor" :group "webeditors"
                          :mode "0644" :requires [home]}))
    (.append available conf)
    (.append enabled (symlink f"/etc/nginx/sites-enabled/{name}" {:target f"../sites-available/{name}"
                                                                  :requires [conf]})))
  (setv settings [main #* parts status snippet passwords default #* available #* enabled certificate key-mode])
  [#* pages rotation
   (command "check-nginx" {:argv ["nginx" "-t" "-q"] :restart-on settings :requires [logs] :effects {}
                           :provides "nginx-is-valid"})
   (service "nginx" {:running True :enabled True :on-change "reload"
                     :requires ["nginx-is-valid" logs limits] :restart-on settings})])
