package dev.penstock.runtime.inference;

import static org.assertj.core.api.Assertions.assertThat;

import dev.penstock.runtime.model.shape.Feed;
import java.util.ArrayList;
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

    /** In a room of 2 x (2 + 2) keys: the last one that the next token sees stays, on the grid. */
    @Test
    void aWindowThatSlidesDropsItsOldestKeys() {
        assertThat(FeedPlan.sliding(1, 12, 2, 4, true, 2).subList(6, 12))
                .containsExactly(
                        new Feed(6, 1, 6, true),
                        new Feed(7, 1, 7, true),
                        new Feed(8, 1, 2, 8, 6, true),
                        new Feed(9, 1, 3, 9, 0, true),
                        new Feed(10, 1, 4, 10, 0, true),
                        new Feed(11, 1, 5, 11, 0, true));
        assertThat(FeedPlan.sliding(5, 3, 16, 4, true, 16))
                .isEqualTo(FeedPlan.of(5, 3, 16, 4, true));
    }

    @Test
    void aWindowThatSlidesHasTheKeysThatItsTokensSeeAndFeedsNoneTwice() {
        for (int context = 1; context <= 6; context++) {
            for (int prompt = 1; prompt <= 8; prompt++) {
                for (int slice = 1; slice <= 4; slice++) {
                    for (int grid = 1; grid <= context; grid++) {
                        slide(
                                FeedPlan.sliding(prompt, 50, context, slice, true, grid),
                                prompt,
                                context,
                                grid);
                    }
                }
            }
        }
    }

    private static void slide(List<Feed> feeds, int prompt, int context, int grid) {
        int start = Math.max(0, prompt - context);
        List<Integer> kept = new ArrayList<>();
        int next = start;
        int known = prompt;
        for (Feed feed : feeds) {
            assertThat(feed.from()).isEqualTo(next);
            assertThat(feed.place()).isEqualTo(feed.from() - start);
            assertThat(feed.dropped() % grid).isZero();
            assertThat(feed.dropped() == 0 || feed.dropped() >= feed.position())
                    .as("none moves onto one that stays: %s", feed)
                    .isTrue();
            kept.subList(0, feed.dropped()).clear();
            assertThat(kept).hasSize(feed.position());
            for (int i = 0; i < feed.count(); i++) {
                kept.add(next++);
                int seen = Math.min(context, next - start);
                assertThat(kept.subList(kept.size() - seen, kept.size()))
                        .first()
                        .isEqualTo(next - seen);
            }
            assertThat(kept.size()).isLessThanOrEqualTo(2 * (context + grid));
            assertThat(feed.chooses()).isEqualTo(feed.end() == known);
            known += feed.chooses() ? 1 : 0;
        }
        assertThat(known).isEqualTo(prompt + 50);
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
