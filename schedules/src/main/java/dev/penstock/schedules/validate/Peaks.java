package dev.penstock.schedules.validate;

import dev.penstock.schedules.ir.Op;
import dev.penstock.schedules.ir.OpPlace;
import dev.penstock.schedules.ir.OpText;
import dev.penstock.schedules.ir.Schedule;
import dev.penstock.schedules.simulate.MemoryProfile;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.stream.Stream;

/** No rank holds more than it may, in units and in bytes. */
final class Peaks {
    private static final List<String> BYTE_UNITS = List.of("B", "KiB", "MiB", "GiB", "TiB", "PiB");

    private final Schedule schedule;
    private final Conditions conditions;
    private final List<Violation> violations = new ArrayList<>();

    Peaks(Schedule schedule, Conditions conditions, MemoryProfile memory) {
        this.schedule = schedule;
        this.conditions = conditions;
        conditions
                .peakUnitsLimit()
                .ifPresent(limit -> memory.ranks().forEach(peak -> judgeUnits(peak, limit)));
        conditions.memoryLimit().ifPresent(this::judgeBytes);
    }

    List<Violation> violations() {
        return violations;
    }

    private void judgeUnits(MemoryProfile.RankPeak peak, int limit) {
        if (peak.peakUnits() > limit) {
            var weightless = MemoryModel.uniform(schedule.shape(), 0, 0, 0);
            String held = heldAt(peak.rank(), peak.position(), weightless).liveUnits();
            violations.add(
                    new Violation.PeakExceeded(
                            place(peak.rank(), peak.position()),
                            peak.peakUnits(),
                            limit,
                            "rank %d holds %d units at %s (op %d), more than the limit of %d: %s"
                                    .formatted(
                                            peak.rank(),
                                            peak.peakUnits(),
                                            text(peak.rank(), peak.position()),
                                            peak.position(),
                                            limit,
                                            held)));
        }
    }

    private void judgeBytes(MemoryLimit limit) {
        if (limit.bytesOfRank().size() != schedule.shape().ranks()) {
            throw new IllegalArgumentException(
                    "expected the limits of %d ranks, got %d"
                            .formatted(schedule.shape().ranks(), limit.bytesOfRank().size()));
        }
        for (RankBytes peak : RankBytes.of(schedule, conditions.passKind(), limit.model())) {
            long most = limit.bytesOfRank().get(peak.rank());
            long throughout = limit.heldThroughout().get(peak.rank());
            long held = peak.peakBytes() + throughout;
            if (held > most) {
                String of = held(peak, throughout, limit.model());
                violations.add(
                        new Violation.MemoryExceeded(
                                place(peak.rank(), peak.position()),
                                held,
                                most,
                                peak,
                                of,
                                "rank %d holds %s at %s (op %d), %s more than its limit of %s: %s"
                                        .formatted(
                                                peak.rank(),
                                                bytes(held),
                                                text(peak.rank(), peak.position()),
                                                peak.position(),
                                                bytes(held - most),
                                                bytes(most),
                                                of)));
            }
        }
    }

    private String held(RankBytes peak, long throughout, MemoryModel model) {
        HeldBytes held = heldAt(peak.rank(), peak.position(), model);
        return String.join(
                "; ",
                Stream.of(
                                throughout == 0 ? "" : bytes(throughout) + " throughout",
                                part(
                                        "activations",
                                        peak.activationBytes(),
                                        "units: " + held.liveUnits()),
                                part(
                                        "inputs to recompute from",
                                        peak.inputBytes(),
                                        "units: " + held.parkedUnits()),
                                part(
                                        "gathered parameters",
                                        peak.gatheredBytes(),
                                        "layers: " + held.gatheredLayers()))
                        .filter(part -> !part.isEmpty())
                        .toList());
    }

    private static String part(String what, long bytes, String counts) {
        return bytes == 0 ? "" : "%s %s (%s)".formatted(bytes(bytes), what, counts);
    }

    private HeldBytes heldAt(int rank, int position, MemoryModel model) {
        return new HeldBytes(schedule.shape(), conditions.passKind(), schedule.program(rank), model)
                .at(position);
    }

    private OpPlace place(int rank, int position) {
        return new OpPlace(rank, position, schedule.program(rank).ops().get(position));
    }

    private String text(int rank, int position) {
        Op op = schedule.program(rank).ops().get(position);
        return OpText.print(op, schedule.shape());
    }

    private static String bytes(long bytes) {
        double value = bytes;
        int unit = 0;
        while (value >= 1024 && unit < BYTE_UNITS.size() - 1) {
            value /= 1024;
            unit++;
        }
        return unit == 0
                ? bytes + " B"
                : String.format(Locale.ROOT, "%.1f %s", value, BYTE_UNITS.get(unit));
    }
}
