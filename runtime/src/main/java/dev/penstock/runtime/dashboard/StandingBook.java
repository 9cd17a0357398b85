package dev.penstock.runtime.dashboard;

import dev.penstock.runtime.dashboard.RunStatusView.Checkpoint;
import dev.penstock.runtime.events.RunEvent;
import java.util.ArrayList;
import java.util.List;

/** Keeps a {@link RunStatusView} up to date. Not thread-safe. */
final class StandingBook {
    private static final int CHECKPOINTS = 200;
    private static final String WHOLE = "whole";

    private List<RunEvent.Members.Member> members = List.of();
    private List<Long> leaseMillis = List.of();
    private long leasesAt;
    private List<RunEvent.Links.Link> links = List.of();
    private long linksStep;
    private final List<Checkpoint> checkpoints = new ArrayList<>();
    private boolean news;

    RunStatusView now() {
        return new RunStatusView(
                members, leaseMillis, leasesAt, links, linksStep, List.copyOf(checkpoints));
    }

    /** Whether anything changed since this was asked last. */
    boolean takeNews() {
        boolean was = news;
        news = false;
        return was;
    }

    void on(RunEvent.Members event) {
        members = event.members();
        leaseMillis = List.of();
        news = true;
    }

    void on(RunEvent.Leases event) {
        leaseMillis = event.millis();
        leasesAt = event.time();
        news = true;
    }

    void on(RunEvent.Links event) {
        links = event.links();
        linksStep = event.step();
        news = true;
    }

    void on(RunEvent.Saved saved) {
        checkpoints.removeIf(known -> known.step() == saved.step());
        checkpoints.add(
                new Checkpoint(saved.time(), saved.step(), saved.bytes(), saved.micros(), "", 0));
        if (checkpoints.size() > CHECKPOINTS) {
            checkpoints.removeFirst();
        }
        news = true;
    }

    void on(RunEvent.Verified event) {
        checkpoints.replaceAll(
                known ->
                        known.step() == event.step()
                                ? new Checkpoint(
                                        known.time(),
                                        known.step(),
                                        known.bytes(),
                                        known.micros(),
                                        event.whole() ? WHOLE : event.problem(),
                                        event.micros())
                                : known);
        news = true;
    }

    /** Of another process: its members and links are not the former's. */
    void begin() {
        members = List.of();
        leaseMillis = List.of();
        links = List.of();
        news = true;
    }
}
