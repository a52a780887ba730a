"""The plain text documents: the notes of a meeting and the transcript of a support call."""

MEETING_NOTES = """Operations meeting, 20 January 2025

Present: Marta Lindqvist (quality), Joris de Wit (logistics), Amina Haddad (stores), Peter Vogel (finance)
Excused: Ines Caldeira (people)
Minutes: Noor Bakker

1. Leipzig warehouse
Joris reported that the new conveyor in Leipzig starts on 17 March 2025. Until then outgoing orders are limited to 1,800
parcels a day. Amina asked to announce later delivery dates on the web shop. Joris talks to Kestrel Freight about a second
truck on Fridays.

2. Budget
Peter confirmed a budget of 48,000 EUR for the second test bench. Offers are in from Testronic and from Meyer Instruments;
the decision is due on 14 February. Marta prefers Testronic because of the shorter calibration time.

3. Staff
The Utrecht store looks for a deputy manager. Interviews are held in the first week of February. Two trainees start in
Hamburg on 1 March.

4. Shrinkage
Stock counts in Lyon show a shrinkage of 0.7 %, twice the figure of the year before. Amina has new locks fitted to the display
cabinets by the end of the month.

5. Web shop
The search of the web shop finds no product when the customer types a hyphen wrongly. A correction is promised for release 8.3
on 24 February.

6. Next meeting
17 February 2025, 10:00, room Kingfisher. Peter brings the figures of January.

Actions
- Joris: second truck on Fridays, until 31 January
- Amina: note on delivery dates in the web shop, until 22 January
- Marta: recommendation on the test bench, until 10 February
"""

SUPPORT_CALL = """Support call transcript
Ticket: SUP-88213
Date: 9 January 2025
Agent: Noor Bakker
Customer: Mr. Steiner, Vienna
Product: Auralis Studio Headphone 204 (HP-2352)

Agent: Northwind Electronics, this is Noor. How can I help you?
Customer: My headphones only play on the left side since the last update.
Agent: Which firmware do they show?
Customer: It says 4.1.7.
Agent: That version has a known fault with the right channel. Please install firmware 4.2.1 with the Auralis Connect app,
then hold the power button for 12 seconds to reset the headphones.
Customer: The app says the battery is too low for an update.
Agent: It needs at least 30 % charge. Please connect the cable; I stay on the line.
Customer: Now it runs. It works again, thank you.
Agent: You are welcome. I have noted a goodwill credit of 15 EUR on your account.
Customer: Does the update reset my equaliser?
Agent: Yes, the presets are lost. You can load them again from the cloud backup under Settings, Profiles.

Duration: 11 minutes. Outcome: solved in the first call. Follow-up: none.
"""
