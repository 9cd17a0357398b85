package dev.penstock.schedules.simulate;

import dev.penstock.schedules.ir.Channel;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/**
 * The text of a profile: a first line that says so, then one fact per line, in any order; {@code #}
 * starts a comment. {@link #print} and {@link #parse} are inverse.
 *
 * <pre>
 * penstock profile 1
 * forward 0s0 1200000            stage 0, slice 0; nanoseconds
 * backward-input 0s0 1300000
 * backward-weight 0s0 900000
 * lengths mixed                  the times are means over sequences of several lengths
 * overlapped 0.85                of the sum of the pair's parts
 * latency 0 1 20000              from stage 0 to stage 1
 * link 0 1 150000
 * gathering forward 0s0 90000    more, for what it gathers by itself
 * gather-work 0 50000            what a gather keeps its rank
 * reduce-work 0 70000
 * gather 0 400000                beside the computations
 * reduce 0 900000
 * offload 0 300000               a unit's activations on their way to the host
 * reload 0 280000                and back
 * update 700000                  after the last op: the commit and the slowest rank's update
 * </pre>
 */
public final class ProfileText {
    private static final String HEADER = "penstock profile 1";

    private static final String KINDS =
            Stream.of(ComputeKind.values()).map(ComputeKind::text).collect(Collectors.joining("|"));
    private static final Pattern COMPUTATION =
            Pattern.compile("(" + KINDS + ") (\\d{1,9})s(\\d{1,9}) (\\d{1,17})");
    private static final Pattern GATHERING =
            Pattern.compile("gathering (" + KINDS + ") (\\d{1,9})s(\\d{1,9}) (\\d{1,17})");
    private static final Pattern OVERLAPPED = Pattern.compile("overlapped (\\d{1,9}(?:\\.\\d+)?)");
    private static final Pattern CHANNEL =
            Pattern.compile("(latency|link) (\\d{1,9}) (\\d{1,9}) (\\d{1,17})");
    private static final Pattern COLLECTIVE =
            Pattern.compile(
                    "(gather|reduce|gather-work|reduce-work|offload|reload) (\\d{1,9}) (\\d{1,17})");

    private static final Pattern UPDATE = Pattern.compile("update (\\d{1,17})");

    private ProfileText() {}

    /** The text of a profile, ending with a line feed. */
    public static String print(ProfileCosts profile) {
        return Stream.concat(Stream.of(HEADER), profile.lines().stream().map(ProfileLine::text))
                .collect(Collectors.joining("\n", "", "\n"));
    }

    /**
     * The profile of a text.
     *
     * @throws InvalidCostsException with everything that is wrong with it, each with its line
     */
    public static ProfileCosts parse(String text) {
        var problems = new ArrayList<String>();
        var lines = new ArrayList<ProfileLine>();
        Set<String> subjects = new HashSet<>();
        boolean header = false;
        List<String> texts = text.lines().toList();
        for (int i = 0; i < texts.size(); i++) {
            String line = texts.get(i).replaceFirst("#.*", "").strip().replaceAll("\\s+", " ");
            String at = "line %d, column 1: ".formatted(i + 1);
            if (line.isEmpty()) {
                continue;
            }
            if (!header) {
                header = true;
                if (!line.equals(HEADER)) {
                    problems.add(at + "expected '%s', got '%s'".formatted(HEADER, line));
                }
                continue;
            }
            Optional<ProfileLine> fact = fact(line);
            if (fact.isEmpty()) {
                problems.add(
                        at + "expected a fact such as '%s', got '%s'".formatted(like(line), line));
            } else if (!subjects.add(line.substring(0, line.lastIndexOf(' ')))) {
                problems.add(at + "'%s' is given twice".formatted(line));
            }
            fact.ifPresent(lines::add);
        }
        if (!header) {
            problems.add("line 1, column 1: expected '%s', got nothing".formatted(HEADER));
        }
        if (!problems.isEmpty()) {
            throw new InvalidCostsException(problems);
        }
        return new ProfileCosts(lines);
    }

    private static Optional<ProfileLine> fact(String line) {
        Matcher computation = COMPUTATION.matcher(line);
        if (computation.matches()) {
            return Optional.of(
                    new ProfileLine.Computation(
                            kind(computation),
                            number(computation, 2),
                            number(computation, 3),
                            last(computation)));
        }
        Matcher gathering = GATHERING.matcher(line);
        if (gathering.matches()) {
            return Optional.of(
                    new ProfileLine.Gathering(
                            kind(gathering),
                            number(gathering, 2),
                            number(gathering, 3),
                            last(gathering)));
        }
        if (line.equals(ProfileLine.MixedLengths.TEXT)) {
            return Optional.of(new ProfileLine.MixedLengths());
        }
        Matcher overlapped = OVERLAPPED.matcher(line);
        if (overlapped.matches()) {
            return Optional.of(
                    new ProfileLine.OverlapFactor(Double.parseDouble(overlapped.group(1))));
        }
        Matcher way = CHANNEL.matcher(line);
        if (way.matches() && Math.abs(number(way, 2) - number(way, 3)) == 1) {
            var channel = new Channel(number(way, 2), number(way, 3));
            return Optional.of(
                    way.group(1).equals("link")
                            ? new ProfileLine.Link(channel, last(way))
                            : new ProfileLine.Latency(channel, last(way)));
        }
        Matcher update = UPDATE.matcher(line);
        if (update.matches()) {
            return Optional.of(new ProfileLine.Update(last(update)));
        }
        Matcher collective = COLLECTIVE.matcher(line);
        if (collective.matches()) {
            int stage = number(collective, 2);
            long nanos = last(collective);
            return Optional.of(
                    switch (collective.group(1)) {
                        case "gather" -> new ProfileLine.Gather(stage, nanos);
                        case "reduce" -> new ProfileLine.Reduce(stage, nanos);
                        case "offload" -> new ProfileLine.Offload(stage, nanos);
                        case "reload" -> new ProfileLine.Reload(stage, nanos);
                        case "gather-work" -> new ProfileLine.GatherWork(stage, nanos);
                        default -> new ProfileLine.ReduceWork(stage, nanos);
                    });
        }
        return Optional.empty();
    }

    private static ComputeKind kind(Matcher line) {
        return Stream.of(ComputeKind.values())
                .filter(kind -> kind.text().equals(line.group(1)))
                .findFirst()
                .orElseThrow();
    }

    private static int number(Matcher line, int group) {
        return Integer.parseInt(line.group(group));
    }

    private static long last(Matcher line) {
        return Long.parseLong(line.group(line.groupCount()));
    }

    /** The right form of a line that begins like this one. */
    private static String like(String line) {
        return switch (line.split(" ", 2)[0]) {
            case "overlapped" -> "overlapped 0.85";
            case "lengths" -> ProfileLine.MixedLengths.TEXT;
            case "latency" -> "latency 0 1 20000";
            case "link" -> "link 0 1 150000";
            case "gathering" -> "gathering forward 0s0 90000";
            case "gather-work" -> "gather-work 0 50000";
            case "reduce-work" -> "reduce-work 0 70000";
            case "gather" -> "gather 0 400000";
            case "reduce" -> "reduce 0 900000";
            case "offload" -> "offload 0 300000";
            case "reload" -> "reload 0 280000";
            case "update" -> "update 700000";
            default -> "forward 0s0 1200000";
        };
    }
}
