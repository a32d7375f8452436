from cbdp.solvers.newton import Newton
