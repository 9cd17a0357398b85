package dev.penstock.runtime.model.parameters;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.penstock.cuda.device.DType;
import dev.penstock.cuda.device.Tensor;
import dev.penstock.runtime.model.memory.CountingScope;
import dev.penstock.runtime.model.shape.Sharding;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

class NeighbourRoomTest {
    private static final int STAGES = 6;

    /** Where a group of a stage lies. */
    private record Taken(ParameterGroup group, Tensor row) {
        boolean overlaps(Taken other) {
            long end = row.offsetBytes() + row.elements() * row.type().bytes();
            long othersEnd = other.row.offsetBytes() + other.row.elements() * row.type().bytes();
            return row.offsetBytes() < othersEnd && other.row.offsetBytes() < end;
        }
    }

    private static RowPool.Kind kind(int elements) {
        return new RowPool.Kind(DType.F32, elements);
    }

    /** Stages of random groups come and go as neighbours, up and down again. */
    @Test
    void neighboursNeverOverlapAndNeedTheLargestTwoTogether() {
        Random random = new Random(5);
        Map<ParameterGroup, Integer> stages = new HashMap<>();
        List<Map<ParameterGroup, RowPool.Kind>> groups = new ArrayList<>();
        long[] bytes = new long[STAGES];
        for (int stage = 0; stage < STAGES; stage++) {
            Map<ParameterGroup, RowPool.Kind> ofStage = new HashMap<>();
            for (int i = 0; i <= random.nextInt(3); i++) {
                var group = new ParameterGroup(stage + "." + i, Sharding.NONE, true, true, null);
                int elements = 1 + random.nextInt(500);
                stages.put(group, stage);
                ofStage.put(group, kind(elements));
                bytes[stage] += (4L * elements + 63) / 64 * 64;
            }
            groups.add(ofStage);
        }
        List<Integer> visits = new ArrayList<>(IntStream.range(0, STAGES).boxed().toList());
        visits.addAll(visits.reversed().subList(1, STAGES));
        var needs = new NeighbourRoom.Needs();
        long most = 0;
        for (int i = 0; i < visits.size(); i++) {
            needs.take(visits.get(i), groups.get(visits.get(i)).values());
            if (i > 0) {
                most = Math.max(most, bytes[visits.get(i)] + bytes[visits.get(i - 1)]);
                needs.giveBack(visits.get(i - 1), groups.get(visits.get(i - 1)).values());
            }
        }
        var scope = new CountingScope("device");

        var room = new NeighbourRoom(scope, needs, stages);

        assertThat(needs.twoAtATime()).isTrue();
        assertThat(scope.liveBytes()).isEqualTo(most);
        List<Taken> here = new ArrayList<>();
        for (int visit : visits) {
            groups.get(visit)
                    .forEach(
                            (group, kind) -> {
                                var next = new Taken(group, room.take(group, kind, "a test"));
                                assertThat(here).noneMatch(next::overlaps);
                                here.add(next);
                            });
            here.removeIf(
                    taken -> {
                        boolean gone = !groups.get(visit).containsKey(taken.group());
                        if (gone) {
                            room.giveBack(taken.group());
                        }
                        return gone;
                    });
        }
    }

    @Test
    void aThirdStageIsNotPlannedForAndRefused() {
        var needs = new NeighbourRoom.Needs();
        Map<ParameterGroup, Integer> stages = new HashMap<>();
        List<ParameterGroup> groups = new ArrayList<>();
        for (int stage = 0; stage < 3; stage++) {
            groups.add(new ParameterGroup("group", Sharding.NONE, true, true, null));
            stages.put(groups.get(stage), stage);
        }
        needs.take(0, List.of(kind(16)));
        needs.take(1, List.of(kind(16)));
        var room = new NeighbourRoom(new CountingScope("device"), needs, stages);
        room.take(groups.get(0), kind(16), "a test");
        room.take(groups.get(1), kind(16), "a test");

        assertThatThrownBy(() -> room.take(groups.get(2), kind(16), "wte"))
                .hasMessageContaining("no room for wte");
        needs.take(2, List.of(kind(16)));
        assertThat(needs.twoAtATime()).isFalse();
    }
}
