package dev.penstock.runtime.model.stage;

import static org.assertj.core.api.Assertions.assertThat;

import dev.penstock.runtime.model.activations.UnitRooms.Kind;
import dev.penstock.schedules.generate.Generators;
import dev.penstock.schedules.ir.PassKind;
import dev.penstock.schedules.ir.PipelineShape;
import dev.penstock.schedules.ir.RankProgram;
import dev.penstock.schedules.ir.Schedule;
import dev.penstock.schedules.lower.ForwardOnly;
import dev.penstock.schedules.lower.InsertOffloads;
import dev.penstock.schedules.lower.InsertRecompute;
import dev.penstock.schedules.lower.OffloadSettings;
import dev.penstock.schedules.simulate.MemoryProfile;
import dev.penstock.schedules.simulate.StagePeak;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.IntFunction;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

/** Rooms of units, compared with the peaks by which the judge proves memory. */
class RoomNeedsTest {
    private static List<Schedule> orders() {
        List<Schedule> orders = new ArrayList<>();
        for (String kind : Generators.kinds()) {
            int chunks =
                    switch (Generators.kind(kind).chunks()) {
                        case ONE -> 1;
                        case TWO, ANY -> 2;
                    };
            Schedule order =
                    Generators.generate(kind, new PipelineShape(2, chunks, 6, List.of(16)));
            Set<Integer> stages =
                    IntStream.range(0, order.shape().stages()).boxed().collect(Collectors.toSet());
            orders.add(order);
            orders.add(InsertRecompute.into(order));
            orders.add(InsertOffloads.into(order, new OffloadSettings(stages, 1)));
        }
        return orders;
    }

    @Test
    void stagesOfOneKindHaveAsManyRoomsAsTheirRankHasLiveUnits() {
        for (Schedule order : orders()) {
            List<MemoryProfile.RankPeak> peaks = MemoryProfile.of(order, PassKind.TRAINING).ranks();
            for (RankProgram program : order.programs()) {
                Kind kind = new Kind("alike", List.of(64L));

                assertThat(needs(order, program, _ -> kind))
                        .as("%s, rank %d", order.name(), program.rank())
                        .isEqualTo(Map.of(kind, peaks.get(program.rank()).peakUnits()));
            }
        }
    }

    @Test
    void stagesOfDifferentKindsHaveAsManyAsEachHasLiveUnits() {
        for (Schedule order : orders()) {
            List<StagePeak> peaks = MemoryProfile.of(order, PassKind.TRAINING).stages();
            for (RankProgram program : order.programs()) {
                IntFunction<Kind> kind = stage -> new Kind("stage " + stage, List.of(64L));

                assertThat(needs(order, program, kind))
                        .as("%s, rank %d", order.name(), program.rank())
                        .isEqualTo(
                                peaks.stream()
                                        .filter(peak -> peak.rank() == program.rank())
                                        .collect(
                                                Collectors.toMap(
                                                        peak -> kind.apply(peak.stage()),
                                                        StagePeak::peakUnits)));
            }
        }
    }

    @Test
    void evaluationsHaveARoomForTheUnitThatTheyCompute() {
        Schedule order =
                ForwardOnly.of(
                        Generators.generate(
                                "breadth-first", new PipelineShape(1, 3, 4, List.of(16))));
        Kind kind = new Kind("alike", List.of(64L));

        assertThat(needs(order, order.program(0), _ -> kind)).isEqualTo(Map.of(kind, 1));
    }

    private static Map<Kind, Integer> needs(
            Schedule order, RankProgram program, IntFunction<Kind> kind) {
        var needs =
                new RoomNeeds(
                        order.placement().stagesOf(program.rank()).stream()
                                .collect(
                                        Collectors.toMap(
                                                stage -> stage,
                                                stage -> Set.of(kind.apply(stage)))));
        needs.run(program);
        return needs.most();
    }
}
