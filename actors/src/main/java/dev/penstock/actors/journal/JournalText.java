package dev.penstock.actors.journal;

import dev.penstock.actors.journal.JournalRecord.Began;
import dev.penstock.actors.journal.JournalRecord.Committed;
import dev.penstock.actors.journal.JournalRecord.Counted;
import dev.penstock.actors.journal.JournalRecord.Ended;
import dev.penstock.actors.journal.JournalRecord.EpochRaised;
import dev.penstock.actors.journal.JournalRecord.Failed;
import dev.penstock.actors.journal.JournalRecord.LossScaled;
import dev.penstock.actors.journal.JournalRecord.Placed;
import dev.penstock.actors.journal.JournalRecord.Published;
import dev.penstock.actors.journal.JournalRecord.Revised;
import dev.penstock.actors.journal.JournalRecord.RolledBack;
import dev.penstock.actors.journal.JournalRecord.Skipped;
import dev.penstock.actors.spi.PlanRevision;
import java.util.List;
import java.util.Optional;
import java.util.OptionalDouble;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/** Records as one line of text, and back. Free text comes last and fits the line. */
final class JournalText {
    /** In the place of a factor: the step overflowed. */
    private static final double NOTHING_APPLIED = 0;

    private JournalText() {}

    static String print(JournalRecord record) {
        return switch (record) {
            case Began(String run, String hash, int ranks, int epoch, long completed) ->
                    "began %d %d %d %s %s".formatted(epoch, ranks, completed, hash, oneLine(run));
            case EpochRaised(int epoch, String cause) -> "epoch " + epoch + " " + oneLine(cause);
            case Counted(long atMs, String cause) -> "counted " + atMs + " " + oneLine(cause);
            case Placed(int rank, String process) -> "placed " + rank + " " + oneLine(process);
            case Committed(int epoch, long step, var clip, double loss, double norm) ->
                    "committed %d %d %s %s %s"
                            .formatted(
                                    epoch,
                                    step,
                                    hex(clip.orElse(NOTHING_APPLIED)),
                                    hex(loss),
                                    hex(norm));
            case Published(long step) -> "published " + step;
            case RolledBack(int epoch, long step) -> "rolled-back %d %d".formatted(epoch, step);
            case Skipped(int epoch, long step) -> "skipped %d %d".formatted(epoch, step);
            case Revised(PlanRevision(int number, var settings, String hash, String reason)) ->
                    "revised %d %s %s"
                            .formatted(
                                    number,
                                    hash,
                                    Stream.concat(settings.stream(), Stream.of(reason))
                                            .map(JournalText::oneLine)
                                            .collect(Collectors.joining("\t")));
            case LossScaled(long step, String state) ->
                    "loss-scaled " + step + " " + oneLine(state);
            case Failed(long step, String reason) -> "failed " + step + " " + oneLine(reason);
            case Ended(long step) -> "ended " + step;
        };
    }

    private static OptionalDouble clipFactor(String word) {
        double factor = Double.parseDouble(word);
        return factor == NOTHING_APPLIED ? OptionalDouble.empty() : OptionalDouble.of(factor);
    }

    private static String hex(double value) {
        return Double.toHexString(value);
    }

    private static String oneLine(String text) {
        return text.replaceAll("\\p{Cntrl}+", " ");
    }

    /** Empty if this is no record. */
    static Optional<JournalRecord> parse(String text) {
        String[] words = text.split(" ", 6);
        try {
            return switch (words[0]) {
                case "began" ->
                        Optional.of(
                                new Began(
                                        words[5],
                                        words[4],
                                        Integer.parseInt(words[2]),
                                        Integer.parseInt(words[1]),
                                        Long.parseLong(words[3])));
                case "epoch" ->
                        Optional.of(
                                new EpochRaised(Integer.parseInt(words[1]), text.split(" ", 3)[2]));
                case "counted" ->
                        Optional.of(new Counted(Long.parseLong(words[1]), text.split(" ", 3)[2]));
                case "placed" ->
                        Optional.of(new Placed(Integer.parseInt(words[1]), text.split(" ", 3)[2]));
                case "committed" ->
                        Optional.of(
                                new Committed(
                                        Integer.parseInt(words[1]),
                                        Long.parseLong(words[2]),
                                        clipFactor(words[3]),
                                        Double.parseDouble(words[4]),
                                        Double.parseDouble(words[5])));
                case "published" -> Optional.of(new Published(Long.parseLong(words[1])));
                case "rolled-back" ->
                        Optional.of(
                                new RolledBack(
                                        Integer.parseInt(words[1]), Long.parseLong(words[2])));
                case "skipped" ->
                        Optional.of(
                                new Skipped(Integer.parseInt(words[1]), Long.parseLong(words[2])));
                case "revised" -> {
                    List<String> parts = List.of(text.split(" ", 4)[3].split("\t", -1));
                    yield Optional.of(
                            new Revised(
                                    new PlanRevision(
                                            Integer.parseInt(words[1]),
                                            parts.subList(0, parts.size() - 1),
                                            words[2],
                                            parts.getLast())));
                }
                case "loss-scaled" ->
                        Optional.of(
                                new LossScaled(Long.parseLong(words[1]), text.split(" ", 3)[2]));
                case "failed" ->
                        Optional.of(new Failed(Long.parseLong(words[1]), text.split(" ", 3)[2]));
                case "ended" -> Optional.of(new Ended(Long.parseLong(words[1])));
                default -> Optional.empty();
            };
        } catch (NumberFormatException | ArrayIndexOutOfBoundsException e) {
            return Optional.empty();
        }
    }
}
