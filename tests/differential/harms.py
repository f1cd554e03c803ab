def plant(name):
    pass
