"""Function words of a few languages: dropped from queries, and counted to tell the language of a text."""

from __future__ import annotations

STOPWORDS: dict[str, frozenset[str]] = {
    language: frozenset(words.split())
    for language, words in {
        "en": "a about above after again all also am an and any are as at be because been before being below between both but by "
        "can could did do does doing down during each few for from further had has have having he her here hers him his how i if in "
        "into is it its itself just may me might more most my no nor not now of off on once only or other our out over own same shall "
        "she should so some such than that the their them then there these they this those through to too under until up us very was "
        "we were what when where which while who whom why will with would you your yours",
        "de": "aber alle als also am an auch auf aus bei bin bis bist da damit das dass dein dem den der des die dies diese dieser "
        "dieses doch dort du durch ein eine einem einen einer eines er es euer fur hat hatte haben ich ihr ihre im in ist ja jede jeder "
        "kann kein keine konnen man mein mit muss nach nicht noch nun nur ob oder ohne sehr sein seine sich sie sind so uber um und uns "
        "unter vom von vor war waren was weil welche welcher wenn wer werden wie wieder wir wird wo zu zum zur",
        "fr": "a ai alors au aucun aussi autre aux avec avoir c ce ces cet cette ceux comme comment d dans de des du elle elles en est et "
        "etait etre eux fait il ils j je l la le les leur leurs lui m ma mais me mes moi mon n ne nos notre nous on ou par pas peut plus "
        "pour pourquoi qu quand que quel quelle qui s sa sans se ses si son sont sous sur t ta te tes toi ton tout tous tres tu un une vos "
        "votre vous y",
        "es": "a al algo algunos ante antes como con contra cual cuando de del desde donde durante e el ella ellas ellos en entre era es "
        "esa ese eso esta estaba este esto estos fue ha hace hasta hay la las le les lo los mas me mi mis mucho muy nada ni no nos "
        "nosotros o os otra otro para pero poco por porque que quien se ser si sin sobre son su sus tambien te tiene todo todos tu un una "
        "unos uno y ya yo",
        "it": "a ad al alla alle allo anche avere c che chi ci come con cui da dal dalla dei del della delle di dove e ed era essere fa "
        "gli ha hanno ho i il in io l la le lei lo loro lui ma mi mio molto ne nei nel nella noi non nostro o ogni per perche piu quale "
        "quando quanto quella quello questa questo qui se sei si sia sono su sua sul sulla suo ti tra tu tutti tutto un una uno voi",
        "nl": "aan al alles als altijd andere ben bij daar dan dat de der deze die dit doch doen door dus een en er geen had heb hebben "
        "heeft hem het hier hij hoe hun iets ik in is ja je kan kon kunnen maar me meer men met mij mijn moet na naar niet niets nog nu "
        "of om omdat onder ons ook op over reeds te tegen toch toen tot u uit uw van veel voor want waren was wat werd wie wij wil worden "
        "wordt zal ze zei zelf zich zij zijn zo zonder zou",
        "pt": "a ao aos as ate com como da das de dela dele do dos e ela elas ele eles em entre era essa esse esta este eu foi foram ha "
        "isso isto ja la lhe mais mas me mesmo meu minha muito na nao nas nem no nos nossa nosso num numa o os ou para pela pelo por qual "
        "quando que quem se sem ser seu seus so sua suas tambem te tem um uma voce",
    }.items()
}
