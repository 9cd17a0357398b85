package dev.penstock.runtime.cli.about;

import dev.penstock.runtime.metrics.Quantities;
import dev.penstock.runtime.planning.PredictedTime;
import dev.penstock.runtime.speed.SpeedReport;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;

/** A measured machine, for people. */
final class SpeedTable {
    private SpeedTable() {}

    static List<String> lines(SpeedReport report) {
        List<String> lines = new ArrayList<>();
        lines.add("Device    " + report.device());
        report.products()
                .forEach(
                        product ->
                                lines.add(
                                        line(
                                                "Products  %-20s %-8s %10.1f GFLOP/s",
                                                product.size(),
                                                product.precision(),
                                                product.flopsPerSecond() / 1e9)));
        if (report.memoryBytesPerSecond() > 0) {
            lines.add(
                    line(
                            "Memory    %-29s %10.1f GB/s",
                            "copied, read and written", report.memoryBytesPerSecond() / 1e9));
        }
        report.links()
                .forEach(
                        link ->
                                lines.add(
                                        line(
                                                "Link      %-29s %10.1f MB/s  %10.1f us each",
                                                "tensors of " + Quantities.bytes(link.bytes()),
                                                link.bytesPerSecond() / 1e6,
                                                link.microseconds())));
        report.disk()
                .ifPresent(
                        disk -> {
                            lines.add(
                                    line(
                                            "Disk      %-29s %10.1f MB/s  %10.1f us for a sync",
                                            "written",
                                            disk.writtenBytesPerSecond() / 1e6,
                                            disk.syncMicroseconds()));
                            lines.add(
                                    line(
                                            "          %-29s %10.1f MB/s  in %s",
                                            disk.cached() ? "read, perhaps from memory" : "read",
                                            disk.readBytesPerSecond() / 1e6,
                                            disk.folder()));
                        });
        report.missing()
                .forEach(
                        missing ->
                                lines.add("Missing   " + missing.part() + ": " + missing.reason()));
        if (!report.estimates().isEmpty()) {
            lines.add("");
            lines.add("What trainings reach at best, as penstock plan counts with these rates:");
            report.estimates()
                    .forEach(
                            estimate ->
                                    lines.add(
                                            line(
                                                    "%-11s %-8s %d %-7s %10.0f tokens/s  %s a step",
                                                    estimate.model(),
                                                    estimate.precision(),
                                                    estimate.stages(),
                                                    estimate.stages() == 1 ? "stage" : "stages",
                                                    estimate.tokensPerSecond(),
                                                    PredictedTime.text(estimate.stepNanos()))));
        }
        return lines;
    }

    private static String line(String format, Object... values) {
        return String.format(Locale.ROOT, format, values);
    }
}
