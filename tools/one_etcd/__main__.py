from tools.one_etcd.command import main

main()
