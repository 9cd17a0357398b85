package dev.penstock.actors.collective;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class ShardMapTest {
    @ParameterizedTest
    @CsvSource({"0,3", "1,4", "16,2", "17,2", "100,3", "4096,4", "31,8"})
    void partsFollowEachOtherOnLines(long elements, int parts) {
        var map = new ShardMap(elements, parts);
        long at = 0;
        for (int part = 0; part < parts; part++) {
            assertThat(map.from(part)).isEqualTo(at);
            assertThat(map.count(part)).isBetween(0L, map.length());
            assertThat(map.from(part) % 16 == 0 || map.count(part) == 0).isTrue();
            at = map.to(part);
        }
        assertThat(at).isEqualTo(elements);
    }
}
