package dev.penstock.actors.dataplane.emulated;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

final class EmulatedLinksTest {
    private static final EmulatedLink SLOW = new EmulatedLink(1e6, 0, 0);
    private static final EmulatedLink SLOWER = new EmulatedLink(1e5, 0, 0);

    @Test
    void ranksOfOneSiteAreNearAndAllOthersFar() {
        var links = new EmulatedLinks(SLOW, List.of(List.of(0, 1), List.of(2, 3)), Map.of(), 0);

        assertThat(links.between(0, 1)).isEmpty();
        assertThat(links.between(3, 2)).isEmpty();
        assertThat(links.between(1, 2)).contains(SLOW);
        assertThat(links.between(4, 0)).contains(SLOW);
    }

    @Test
    void aDirectionMayHaveALinkOfItsOwn() {
        var links =
                new EmulatedLinks(
                        EmulatedLink.NONE,
                        List.of(),
                        Map.of(new EmulatedLinks.Direction(0, 1), SLOWER),
                        0);

        assertThat(links.areEmulated()).isTrue();
        assertThat(links.between(0, 1)).contains(SLOWER);
        assertThat(links.between(1, 0)).isEmpty();
        assertThat(EmulatedLinks.NONE.areEmulated()).isFalse();
    }
}
