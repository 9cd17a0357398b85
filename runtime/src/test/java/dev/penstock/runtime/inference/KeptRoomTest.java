package dev.penstock.runtime.inference;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.List;
import java.util.OptionalInt;
import java.util.Random;
import org.junit.jupiter.api.Test;

class KeptRoomTest {
    private record Taken(int from, int tokens) {}

    @Test
    void noTwoTextsShareRoomWhateverComesAndGoes() {
        var random = new Random(11);
        KeptRoom room = KeptRoom.of(9, 500, 2_000);
        List<Taken> here = new ArrayList<>();
        int refused = 0;
        for (int i = 0; i < 5_000; i++) {
            int tokens = 1 + random.nextInt(500);
            OptionalInt from = room.take(tokens);
            if (from.isPresent()) {
                here.forEach(
                        other ->
                                assertThat(
                                                from.getAsInt() + tokens <= other.from
                                                        || other.from + other.tokens
                                                                <= from.getAsInt())
                                        .isTrue());
                assertThat(from.getAsInt() + tokens).isLessThanOrEqualTo(room.tokens());
                here.add(new Taken(from.getAsInt(), tokens));
            } else {
                refused++;
                assertThat(freeSideBySide(room, here)).isLessThan(tokens);
                Taken gone = here.remove(random.nextInt(here.size()));
                room.give(gone.from, gone.tokens);
            }
        }
        assertThat(refused).isPositive();

        here.forEach(text -> room.give(text.from, text.tokens));

        assertThat(room.taken()).isZero();
        assertThat(room.take(room.tokens())).hasValue(0);
    }

    /** The most tokens that lie free in a row, token by token, of whole blocks. */
    private static int freeSideBySide(KeptRoom room, List<Taken> here) {
        var used = new boolean[room.tokens()];
        for (Taken text : here) {
            int end = (text.from + text.tokens + 63) / 64 * 64;
            for (int token = text.from; token < end; token++) {
                used[token] = true;
            }
        }
        int most = 0;
        int row = 0;
        for (boolean taken : used) {
            row = taken ? 0 : row + 1;
            most = Math.max(most, row);
        }
        return most;
    }

    @Test
    void thereIsRoomForOneOfTheLongestAndNeverForMoreThanAllOfThem() {
        assertThat(KeptRoom.of(4, 100, 100).take(100)).hasValue(0);
        assertThat(KeptRoom.of(4, 100, Integer.MAX_VALUE).tokens()).isEqualTo(4 * 128);
        assertThat(KeptRoom.of(3, 20, Integer.MAX_VALUE).tokens()).isEqualTo(60);
        assertThat(KeptRoom.of(8, 1_000, 2_048).tokens()).isEqualTo(2_048);
    }
}
