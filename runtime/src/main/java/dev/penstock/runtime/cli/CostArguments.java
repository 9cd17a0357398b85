package dev.penstock.runtime.cli;

import dev.penstock.schedules.ir.Schedule;
import dev.penstock.schedules.simulate.CostModel;
import dev.penstock.schedules.simulate.InvalidCostsException;
import dev.penstock.schedules.simulate.ProfileCosts;
import dev.penstock.schedules.simulate.ProfileText;
import dev.penstock.schedules.simulate.Traffic;
import dev.penstock.schedules.simulate.UnitCosts;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Option;

/** What ops cost in a simulation. */
final class CostArguments {
    private static final String PROFILE = "profile.txt";

    @Option(
            names = "--costs",
            paramLabel = "OP=TIME,..",
            description = {
                "Times in any whole unit: forward, backward-input and backward-weight",
                "(default 1 each), backward (default both), recompute, overlapped,",
                "transfer, link, gather, reduce (default 0 each)."
            })
    private List<String> costs = new ArrayList<>();

    @Option(
            names = "--profile",
            paramLabel = "RUN|FILE",
            description = {
                "Times that a run measured, in nanoseconds: its directory, or its",
                "profile.txt."
            })
    private @Nullable Path profile;

    @Option(
            names = "--hardware",
            paramLabel = "FILE",
            description = {
                "Times in nanoseconds that follow from a cluster file, such as those of",
                "sample-configs/clusters: one device per rank, one sequence per micro-batch."
            })
    private @Nullable Path hardware;

    @Option(
            names = "--model",
            paramLabel = "NAME|FILE|KEY=VALUE,..",
            defaultValue = "gpt2-124m",
            description = {
                "The model on that hardware, as in penstock plan (default:",
                "${DEFAULT-VALUE})."
            })
    private String model = "";

    @Option(
            names = "--straggler",
            paramLabel = "RANK=FACTOR",
            description =
                    "All ops of a rank take FACTOR times as long; may be repeated for other ranks.")
    private List<String> stragglers = new ArrayList<>();

    /** Whether times are nanoseconds and not units. */
    boolean measured() {
        return profile != null || hardware != null;
    }

    /**
     * The costs of what the schedule computes, on ranks that may be slow.
     *
     * @throws BadInputException with everything that is wrong with them
     */
    CostModel model(Schedule schedule) {
        return Stragglers.among(stragglers, schedule.shape().ranks(), usual(schedule));
    }

    /** Whether some rank is slow. */
    boolean hasStragglers() {
        return !stragglers.isEmpty();
    }

    /** Bytes of the tensors, where the model is known. */
    Optional<Traffic.TensorBytes> tensorBytes(Schedule schedule) {
        return Optional.ofNullable(hardware).map(file -> HardwareModel.of(file, model, schedule));
    }

    /** The costs if no rank is slow. */
    CostModel usual(Schedule schedule) {
        long given =
                Stream.of(!costs.isEmpty(), profile != null, hardware != null)
                        .filter(each -> each)
                        .count();
        if (given > 1) {
            throw new BadInputException(
                    "expected one of --costs, --profile and --hardware, got %d".formatted(given));
        }
        if (hardware != null) {
            return HardwareModel.of(hardware, model, schedule);
        }
        if (profile == null) {
            return units();
        }
        ProfileCosts measured = read(profile);
        List<String> missing = measured.missing(schedule);
        if (!missing.isEmpty()) {
            throw new BadInputException(
                    "%s was measured on another shape, it lacks %s; simulate an order of the run's stages and slices, or give --costs"
                            .formatted(profile, String.join("; ", missing)));
        }
        return measured;
    }

    /**
     * @throws BadInputException with everything that is wrong with them
     */
    UnitCosts units() {
        try {
            return UnitCosts.parse(String.join(",", costs));
        } catch (InvalidCostsException e) {
            throw new BadInputException("--costs: " + String.join("\n--costs: ", e.problems()));
        }
    }

    private static ProfileCosts read(Path path) {
        Path file = Files.isDirectory(path) ? path.resolve(PROFILE) : path;
        try {
            return ProfileText.parse(Files.readString(file));
        } catch (IOException e) {
            throw new BadInputException(
                    "expected the profile of a run, got %s (%s); try the directory of a run that has ended"
                            .formatted(file, e.getClass().getSimpleName()));
        } catch (InvalidCostsException e) {
            throw new BadInputException(
                    e.problems().stream()
                            .map(problem -> "\n  %s, %s".formatted(file, problem))
                            .reduce(file + " is no profile", String::concat));
        }
    }
}
