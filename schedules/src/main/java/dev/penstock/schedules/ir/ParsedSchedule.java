package dev.penstock.schedules.ir;

import java.util.List;

/**
 * A schedule and where its ops stand in the text that it was read from, so that what the judge
 * objects to can be shown in the file.
 *
 * @param positions entry r holds the position of every op of rank r, then that of its end
 */
public record ParsedSchedule(Schedule schedule, List<List<TextPosition>> positions) {
    public ParsedSchedule {
        positions = positions.stream().map(List::copyOf).toList();
    }

    /** Where an op stands; for a missing op, where its rank's program ends. */
    public TextPosition positionOf(OpPlace place) {
        List<TextPosition> ofRank = positions.get(place.rank());
        return ofRank.get(Math.min(place.position(), ofRank.size() - 1));
    }
}
