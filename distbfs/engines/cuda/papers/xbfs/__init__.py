"""Engine xbfs-paper: Gaihre, Wu, Yao, Liu 2019."""
