"""What levels that are launched ahead are expected to have."""

from distbfs.search.runners.expected import LEARNT, Expected, LevelKey


def test_what_boxes_are_expected_to_have():
    expected = Expected(100, 5000, 4000)

    def key(edges, left):
        return LevelKey.of(edges, edges // 9, left)

    level = expected.level
    assert level(None) == level(key(10, 10)) == (100, None)
    whole = [128, 192, 256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096]
    assert expected.sizes(4999) == [100, *whole]
    assert expected.sizes(1000) == [100, *whole[:6]]
    assert expected.sizes(100) == [100]
    expected.learn(key(1000, 90_000), 2000, "pull")
    assert level(key(1000, 90_000)) == (3072, "pull")  # a little more, in whole steps
    assert level(key(1500, 90_000)) == (3072, "pull")
    assert level(key(1000, 45_000)) == (1536, "pull")  # as what is left
    assert level(key(3000, 90_000)) == (3072, None)  # the other way may be far better
    assert level(key(60_000, 90_000)) == level(None) == (100, None)
    expected.learn(key(20, 90_000), 50, "push")
    assert level(key(30, 90_000)) == (100, "push")
    assert level(key(45, 90_000)) == (128, "push")  # as its edges
    expected.learn(key(1100, 90_000), 3000, "pull")  # the most of those very near
    assert level(key(1000, 90_000)) == (4096, "pull")
    expected.learn(key(1100, 90_000), 1000, "push")  # not forgotten at once
    assert level(key(1100, 90_000)) == (3072, "push")
    expected.learn(key(1000, 90_000), 9000, "pull")
    assert level(key(1000, 90_000)) == (4096, "pull")  # there is no larger box
    wide = Expected(100, 5000, 20_000)
    wide.learn(key(1000, 90_000), 9000, "pull")
    assert wide.level(key(1000, 90_000)) == (100, "pull")  # more than is sent at first
    assert wide.sizes(1 << 20)[-1] == 4096
    expected.learn(key(1300, 90_000), 100, "push")
    assert level(key(1000, 90_000))[1] is None  # such levels went both ways
    assert level(LevelKey.of(0, 1000, 90_000)) == (100, None)  # not counted
    expected.learn(LevelKey.of(0, 1000, 90_000), 400, "pull")
    assert level(LevelKey.of(0, 900, 90_000)) == (512, "pull")
    root = LevelKey.of_root
    expected.learn(root(5), 300, "pull")
    expected.learn(root(None), 250, "push")
    expected.learn(root(None).after_root(), 400, "push")
    assert level(root(7))[1] == "pull"
    assert level(root(7))[0] > 300
    assert level(root(5000)) == (100, None)
    assert level(root(5).after_root()) == (100, None)
    assert level(root(None)) == (384, "push")
    assert level(root(None).after_root()) == (512, "push")
    assert key(5, 5).after_root() == key(5, 5)
    for k in range(2 * LEARNT):
        expected.learn(key(1 << k % 60, 1 << k // 60), 200, "push")
    assert level(key(2, 1))[0] > 200
