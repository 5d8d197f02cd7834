"A web site on nginx: package, user, directory tree, site configuration from a template, and the service.

The same definition as web.py. The service is restarted when the site's configuration changes, and only then."

(require statecfg.dialects.hy [defplay])
(import statecfg.resources [directory file group package service user])

(defplay web [host] {:hosts "web" :vars {"port" 8080 "server_name" "_" "root" "/srv/www"}}
  (setv root (:root host.vars)
        nginx (package "nginx")
        team (group "deploy")
        deploy (user "deploy" {:group "deploy" :home "/home/deploy" :shell "/bin/bash" :requires [team]})
        home (directory root {:owner "deploy" :group "deploy" :mode "0755" :parents True :requires [deploy]})
        pages (directory f"{root}/site" {:owner "deploy" :group "deploy" :mode "0755" :requires [home]})
        index (file f"{root}/site/index.html"
                    {:template "web-index.html.j2" :owner "deploy" :group "deploy" :mode "0644" :requires [pages]})
        site (file "/etc/nginx/conf.d/site.conf" {:template "web-site.conf.j2" :mode "0644" :requires [nginx]}))
  (service "nginx" {:running True :enabled True :requires [index] :restart-on [site]}))
