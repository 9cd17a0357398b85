package dev.penstock.runtime.inference;

import static org.assertj.core.api.Assertions.assertThat;

import dev.penstock.runtime.model.shape.Feed;
import java.util.List;
import org.junit.jupiter.api.Test;

class FeedPlanTest {
    @Test
    void thePromptComesInSlicesThenTokensOneByOne() {
        assertThat(FeedPlan.of(5, 3, 16, 4, true))
                .containsExactly(
                        new Feed(0, 4, 0, false),
                        new Feed(4, 1, 4, true),
                        new Feed(5, 1, 5, true),
                        new Feed(6, 1, 6, true));
    }

    @Test
    void aFullContextGoesOnFromItsYoungerHalf() {
        assertThat(FeedPlan.of(7, 4, 8, 3, true))
                .containsExactly(
                        new Feed(0, 3, 0, false),
                        new Feed(3, 3, 3, false),
                        new Feed(6, 1, 6, true),
                        new Feed(7, 1, 7, true),
                        new Feed(5, 3, 0, false),
                        new Feed(8, 1, 3, true),
                        new Feed(9, 1, 4, true));
    }

    @Test
    void withoutCachesEveryTokenFeedsItsWindowAgain() {
        assertThat(FeedPlan.of(3, 2, 8, 2, false))
                .containsExactly(
                        new Feed(0, 2, 0, false),
                        new Feed(2, 1, 2, true),
                        new Feed(0, 2, 0, false),
                        new Feed(2, 2, 2, true));
    }

    @Test
    void ofAnOverlongPromptTheLastTokensCount() {
        assertThat(FeedPlan.of(9, 1, 4, 4, true)).containsExactly(new Feed(5, 4, 0, true));
    }

    /** Every choice is made with a whole window of known tokens behind it, whatever the lengths. */
    @Test
    void noFeedIsAheadOfItsTokensNorLeavesAHole() {
        for (int context = 1; context <= 6; context++) {
            for (int prompt = 1; prompt <= 8; prompt++) {
                for (int slice = 1; slice <= 4; slice++) {
                    for (boolean caches : new boolean[] {true, false}) {
                        check(FeedPlan.of(prompt, 12, context, slice, caches), prompt, context);
                    }
                }
            }
        }
    }

    private static void check(List<Feed> feeds, int prompt, int context) {
        int known = prompt;
        int cached = 0;
        int windowStart = 0;
        for (Feed feed : feeds) {
            if (feed.position() == 0) {
                windowStart = feed.from();
                cached = 0;
            }
            assertThat(feed.position()).isLessThanOrEqualTo(cached);
            assertThat(feed.from() - feed.position()).isEqualTo(windowStart);
            cached = feed.position() + feed.count();
            assertThat(cached).isLessThanOrEqualTo(context);
            assertThat(feed.end()).isLessThanOrEqualTo(known);
            assertThat(feed.chooses()).isEqualTo(feed.end() == known);
            known += feed.chooses() ? 1 : 0;
        }
        assertThat(known).isEqualTo(prompt + 12);
    }
}
