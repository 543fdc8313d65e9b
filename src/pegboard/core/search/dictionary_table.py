# ruff: noqa: E501
"""Words of requests in other languages, with what they mean in English.

One row per meaning, one column per language; the sections have different columns. Words of a cell
are separated by spaces. `_` joins the words of a phrase, and `~` a verb and its particle, which
may have words between them: `lade~hoch` is in "lade das Bild hoch". Inflected forms are listed only
where a stemmer does not reduce them to a form that is listed. Where a word is in several rows, the
first row counts.

Only data: `dictionary.py` reads it, with the first query that may not be in English.
"""

TABLE = """\
= function|de|fr|es|it|pt|nl
the|der die das den dem des|le la les l|el la los las lo|il lo la i gli le l|o a os as|de het
a|ein eine einen einem einer eines|un une|un una unos unas|un una uno|um uma uns umas|een
of|von vom|de du des d|de del|di del della dello dei delle degli d|de do da dos das|van
in|in im ins|dans en|en|in nel nella nello nei nelle negli|em no na nos nas num numa|in
on|am auf an aufs|sur|sobre|su sul sulla sui sulle sullo|sobre|op aan
at|bei beim|chez||presso||bij
for|für fürs|pour|para|per|para pra pro|voor
with|mit|avec|con|con col|com|met
without|ohne|sans|sin|senza|sem|zonder
to|zu zum zur nach|à au aux vers|a al hacia|a al alla allo ai alle agli|ao à aos às|naar te
from|aus ab|depuis|desde|da dal dalla dallo dai dalle dagli|desde|vanaf uit
by||par|por||por pelo pela pelos pelas|door
and|und|et|y e|e ed|e|en
or|oder|ou|o u|o oppure|ou|of
but|aber|mais|pero sino|ma però|mas|maar
not|nicht kein keine keinen keiner keinem|ne pas aucun aucune n|no ningún ninguna ninguno|non nessun nessuna nessuno|não nenhum nenhuma|niet geen
i|ich|je j|yo|io|eu|ik
me|mir mich|moi me m|me mí|mi me|me mim|mij me
my|mein meine meinen meinem meiner meines|mon ma mes|mi mis|mio mia miei mie|meu minha meus minhas|mijn
you|du dich dir ihr euch|tu vous toi te|tú usted ustedes te|tu ti te voi|tu você vocês te|jij je jou
your|dein deine deinen deiner ihre ihren ihrem ihrer|ton ta tes votre vos|tu tus su sus|tuo tua tuoi tue vostro vostra|teu tua teus seu sua seus suas|jouw jullie
we|wir uns|nous on|nosotros nos|noi ci|nós nos|wij we ons
our|unser unsere unseren unserem unserer|notre nos|nuestro nuestra nuestros nuestras|nostro nostra nostri nostre|nosso nossa nossos nossas|onze
he|er ihn ihm|il lui|él|lui egli|ele|hij hem
she|sie|elle|ella|lei|ela|zij ze haar
it|es|cela ça c|ello|esso ciò|isso isto|het
they|ihnen|ils elles leur leurs|ellos ellas les|loro|eles elas lhe lhes|zij hun hen
this|dieser diese dieses diesen diesem dies|ce cet cette ces|este esta esto estos estas ese esa eso|questo questa questi queste quest|este esta estes estas esse essa esses essas neste nesta deste desta|deze dit
that|dass jener jene|que qu|que aquel aquella|che quel quella quello quei quelle|que aquele aquela|dat die
who|wer wem wen|qui|quién quiénes|chi|quem|wie
what|was|quoi quel quelle quels quelles quest qu'est-ce|qué cuál cuáles|cosa che_cosa cos|o_que quê qual quais|wat
which|welche welcher welches welchen welchem|lequel laquelle lesquels lesquelles|cuál cuáles|quale quali qual|qual quais|welke welk
where|wo wohin woher|où|dónde adónde|dove dov|onde aonde|waar
when|wann|quand|cuándo|quando|quando|wanneer
why|warum wieso weshalb|pourquoi|por_qué|perché|por_que porquê|waarom
how|wie|comment|cómo|come com|como|hoe
how many|wie_viele wieviele|combien|cuántos cuántas|quanti quante|quantos quantas|hoeveel
how much|wie_viel wieviel||cuánto cuánta|quanto quanta|quanto quanta|
is|ist sei|est|es está|è sta|é está|is
are|sind seid|sont sommes êtes|son están somos|sono siamo stanno|são estão somos|zijn ben bent
was|war waren|était étaient été|fue era fueron|era stato stata erano fu|foi era foram|was waren
will be|wird werden werde wirst|sera seront va vont|será va van serán|sarà saranno|será vai vão serão|wordt worden zal zullen
have|habe haben hat hast hatte gehabt|ai as a ont avons avez avoir eu|tengo tiene tienen ha he hay haber tener tenemos|ho ha hai hanno abbiamo avere|tenho tem têm há ter temos|heb heeft hebben hebt had
can|kann können kannst könnt könntest könnten|peux peut pouvez peuvent pourrais pourriez pouvoir puis|puedo puede puedes pueden podrías podría poder|posso può puoi possono potresti potrebbe potere|posso pode podes podem poderia poderias|kan kun kunt kunnen kunje
must|muss müssen musst soll sollen sollte|dois doit devez faut doivent|debo debe deben hay_que tengo_que|devo deve devi devono bisogna|devo deve devem preciso|moet moeten
want|will möchte möchten wollen hätte brauche brauchen benötige|veux voudrais souhaite voulons besoin aimerais|quiero quisiera deseo necesito queremos necesitamos gustaría|voglio vorrei desidero vogliamo bisogno|quero queria gostaria desejo queremos precisamos|wil willen zou graag nodig
please|bitte mal|s'il_te_plaît s'il_vous_plaît svp stp veuillez|favor por_favor|favore per_favore prego|favor por_favor|alsjeblieft alstublieft even graag
do|tu tun mache mach machen|fais fait faire faites|hacer haz hace haga hago|fare fa fai fammi faccio|fazer faz faça faço|doe doet doen
there is|gibt_es gibt|il_y_a y_a-t-il y|hay|c'è ci_sono|existe existem|er is_er zijn_er
if|wenn falls ob|si|si|se|se|als indien of
because|weil|parce car|porque|poiché|porque|omdat
all|alle aller allen alles sämtliche|tous toutes tout toute|todos todas todo toda|tutti tutte tutto tutta|todos todas todo toda|alle alles allemaal
every|jeder jede jedes jeden jedem|chaque|cada|ogni ciascun|cada|elk elke ieder iedere
some|einige manche etwas|quelques|algunos algunas algo|alcuni alcune qualche|alguns algumas algo|sommige enkele wat
other|andere anderen anderer anderes anderem|autre autres|otro otra otros otras|altro altra altri altre|outro outra outros outras|andere ander
more|mehr weitere weiteren|plus davantage|más|più altri|mais|meer
also|auch noch|aussi|también|anche|também|ook nog
only|nur bloß|seulement uniquement|solo sólo solamente|solo soltanto|só somente apenas|alleen slechts
already|schon bereits|déjà|ya|già|já|al reeds
very|sehr|très|muy|molto|muito|zeer erg heel
here|hier|ici|aquí|qui qua|aqui|hier
there|dort da|là|allí ahí|lì là|ali lá|daar
about|über zum_thema|à_propos_de concernant|acerca sobre|riguardo su|sobre acerca|over
between|zwischen|entre|entre|tra fra|entre|tussen
before|vor bevor|avant|antes|prima|antes|vóór voordat
after|nachdem danach|après|después tras|dopo|depois após|na nadat
until|bis|jusqu jusque|hasta|fino|até|tot
since|seit|depuis|desde|da|desde|sinds
under|unter|sous|bajo|sotto|sob|onder
than|als|que|que|che|que do_que|dan
then|dann|puis alors ensuite|luego entonces|poi allora|então depois|dan daarna
so||donc ainsi|así|così|assim|zo
as|||como|come|como|als
self|selbst sich||sí se mismo|sé si stesso|se mesmo|zich zelf
= function|ru|pl|zh|ja
in|в во на|w we na|在 里 中|で に
on|на|na|上|
for|для за|dla za|为 给 对|ために 向け
with|с со|z ze|跟 与 同|と
without|без|bez|没有 没|なし ない
to|к ко|do ku|到 向|へ まで
from|из от с|od z ze|从|から
of|||的|の
and|и а|i oraz a|和 及 并|と や そして
or|или|lub albo|或 或者|または か
but|но|ale lecz|但 但是|しかし
not|не нет|nie brak|不 别 不要|ない ません
i|я|ja|我|私 僕
me|мне меня|mnie mi|我|私に
my|мой моя моё мои мою моего моей моих моем моим|mój moja moje moją mojego mojej moich moim|我的|私の 自分の
you|ты вы тебе вам|ty wy ci was|你 您|あなた
your|твой ваш ваша|twój wasz|你的|あなたの
we|мы нам нас|my nam nas|我们 咱们|私たち
our|наш наша наше наши нашего нашей нашу|nasz nasza nasze naszego naszej|我们的|私たちの
he|он его ему|on jego jemu go mu|他|彼
she|она её ей|ona jej|她|彼女
they|они их им|oni ich im|他们|彼ら
it|оно|ono to|它|それ
this|этот эта это эти эту этого этой этом этих|ten ta to te tę tego tej tym tych|这 这个 该 此|この これ
that|тот та то те что чтобы|tamten tamta że żeby aby|那 那个|その あの それ
who|кто кому кого|kto komu kogo|谁|誰 だれ
what|что чем|co czego|什么 啥 哪些内容|何 なに
which|какой какая какое какие каких какую каком|który która które jaki jaka jakie jakich których|哪个 哪些 哪|どの どれ
where|где куда|gdzie dokąd|哪里 哪儿 在哪|どこ
when|когда|kiedy|什么时候 何时 几点|いつ
why|почему зачем|dlaczego czemu|为什么 为何|なぜ どうして
how|как|jak|怎么 如何 怎样|どう どのように どうやって
how many|сколько|ile|多少 几个 几|いくつ 何個 何件 何人
is|есть|jest są|是 有|です である ある います あります
was|был была было были|był była było były|了 过|でした ました
will be|будет будут|będzie będą|会 将|でしょう
have|имею|mam ma mamy mają|有|持って
can|можно могу может можешь можете|można mogę może możesz możecie|能 可以 能不能 可不可以|できる できます
must|нужно надо должен необходимо|trzeba musi muszę należy|必须 应该 需要|べき 必要
want|хочу хотим хотел хотела хотелось|chcę chcemy chciałbym chciałabym potrzebuję|想 要 想要|たい 欲しい ほしい
please|пожалуйста|proszę|请 麻烦 帮我 帮忙|ください 下さい お願いします お願い して してください
there is|есть имеется|istnieje|有没有 是否|ありますか
all|все всех весь вся всё всем|wszystkie wszystkich wszystko cały cała wszyscy|所有 全部 全 一切|すべて 全て 全部 全
every|каждый каждая каждое каждого|każdy każda każde każdego|每 每个|毎 各
some|некоторые несколько|kilka niektóre|一些 几个|いくつかの
other|другой другая другое другие другому другую|inny inna inne innego innemu|其他 另 另一个 别的|他の 別の ほかの
more|больше ещё|więcej jeszcze|更多 更|もっと さらに
also|также тоже|też także również|也 还|も
only|только лишь|tylko jedynie|只 仅|だけ のみ
already|уже|już|已经 已|もう すでに
very|очень|bardzo|很 非常|とても
here|здесь тут|tu tutaj|这里|ここ
there|там|tam|那里|そこ
about|о об про|o na_temat|关于|について に関する に関して
between|между|między pomiędzy|之间|間
before|перед до|przed zanim|之前 以前 前|前
after|после|po potem|之后 以后 后|後
until|до|do aż|直到|まで
since|с|od|自从|以来
by|по|przez|由 按|によって
if|если|jeśli jeżeli czy|如果|もし
= verb|de|fr|es|it|pt|nl
hand over assign|übergeben übergib weiterreichen abgeben_an|passer_à confier confie|pasa pásale pasar_a|passa passare_a|passe_para passa_para passa_pra passar_para|doorgeven overdragen geef~door draag~over
throw away delete|wegwerfen wirf~weg schmeiß~weg schmeiß~raus wirf~raus wirf~hinaus|jeter jette|tirar tira desechar|buttare butta butta_via|jogar_fora jogue_fora joga_fora descartar|weggooien gooi~weg
take remove|nimm~heraus nimm~raus|||||haal~af haal~weg
create|erstellen anlegen lege lege~an erzeugen eröffnen erfassen aufmachen leg~an erfasse|créer créez création|crear cree creación dar_de_alta|creare creazione crea|criar crie criação|maken aanmaken maak maak~aan aangemaakt opstellen
make|machen bauen|fabriquer|hacer|fare realizzare|fazer|maken
add|hinzufügen ergänzen füge~hinzu füge ergänze füg~hinzu aufnehmen|ajouter rajouter ajoute|añadir agregar añade agrega añádelo agregue|aggiungere aggiungi aggiunga|adicionar acrescentar adicione incluir|toevoegen voeg~toe voeg
insert|einfügen füge~ein einsetzen|insérer|insertar|inserire inserisci|inserir insira|invoegen
delete|löschen entfernen lösch weglöschen vernichten|supprimer effacer suppression supprime|borrar eliminar borra elimina suprimir bórralo|eliminare cancellare elimina cancella cancellazione|apagar excluir deletar eliminar apague exclua|verwijderen wissen verwijder wis gooi~weg
remove|entfernen nimm~weg nimm~heraus nimm~raus wegnehmen streichen|enlever retirer retire ôter|quitar quita retirar quite|rimuovere togliere rimuovi togli|remover retirar tirar remova tire|weghalen haal~weg haal~uit
cancel|absagen stornieren abbrechen sage~ab sag~ab storniere brich~ab kündigen kündige|annuler résilier annule|cancelar anular cancela anula|annullare disdire annulla disdici|cancelar anular cancele desmarcar|annuleren afzeggen annuleer zeg~af opzeggen
update|aktualisieren auf_den_neuesten_stand|actualiser mettre_à_jour mets_à_jour mettez_à_jour mise_à_jour|actualizar actualiza actualice|aggiornare aggiorna aggiorni aggiornamento|atualizar atualize atualiza|bijwerken updaten werk~bij bijgewerkt
change|ändern verändern ändere abändern umstellen wechseln stell~um anpassen passe~an|changer modifier modifie change|cambiar modificar cambia modifica cambie|cambiare modificare cambia modifica|mudar alterar modificar mude altere trocar|wijzigen veranderen wijzig verander aanpassen pas~aan
edit|bearbeiten editieren bearbeite überarbeiten|éditer retoucher édite|editar edita|modificare redigere|editar edite|bewerken bewerk
rename|umbenennen benenne~um benenne|renommer renomme|renombrar renombra cambiar_el_nombre cambia_el_nombre|rinominare rinomina|renomear renomeie mudar_o_nome|hernoemen hernoem
correct fix|korrigieren berichtigen beheben reparieren behebe|corriger réparer corrige|corregir arreglar corrige arregla|correggere riparare correggi sistemare sistema|corrigir consertar corrija conserte arrumar|corrigeren herstellen repareren verbeter oplossen
show|zeige zeig zeigen anzeigen darstellen zeige~an|montrer afficher montre affiche affichez visualiser|mostrar muestra muéstrame enseñar enséñame visualizar muestre muéstreme|mostrare mostra mostrami visualizzare visualizza|mostrar mostre mostra exibir exiba|tonen toon laat_zien laat~zien weergeven
see|sehen ansehen anschauen schauen siehe|voir regarder consulter consulte|ver mirar mira ve consultar|vedere guardare guarda vedi consultare|ver olhar veja consultar olhe|zien bekijken bekijk kijken kijk
list|auflisten liste aufzählen listen auflistung übersicht liste~auf aufstellung|lister énumérer liste listez|listar enumerar lista listado|elencare elenca elenco lista|listar liste enumerar lista|oplijsten lijst opsommen overzicht som~op
get|holen hole hol abrufen bekommen besorgen beschaffen rufe~ab erhalte|obtenir récupérer récupère obtiens chercher|obtener obtén conseguir traer tráeme consigue|ottenere ottieni prendere prendi recuperare recupera|obter obtenha pegar pegue buscar recuperar|ophalen krijgen haal haal~op verkrijgen
give|gib geben gebe nenne|donner donne donnez|dar dame da dé deme|dare dammi dai dia|dar dê me_dá|geven geef
tell|sage sag sagen erzähle mitteilen teile~mit|dire dis dites|decir dime diga di|dire dimmi dica|dizer diga me_diga conte|vertellen vertel zeg zeggen
find|finden finde herausfinden auffinden|trouver trouve trouvez retrouver|encontrar encuentra hallar localizar encuentre|trovare trova trovami|encontrar encontre achar ache localizar|vinden vind opzoeken zoek~op
search|suchen suche such durchsuchen recherchieren durchsuche|chercher rechercher cherche recherche|buscar busca búscame busque búsqueda|cercare cerca cercami ricerca|procurar pesquisar procure pesquise busque busca pesquisa|zoeken zoek doorzoeken doorzoek
read|lesen lies vorlesen einlesen lese lies~vor|lire lis lisez lecture|leer lee léeme|leggere leggi leggimi|ler leia|lezen lees voorlezen
write|schreiben schreib verfassen schreibe formuliere|écrire écris rédiger rédige écrivez|escribir escribe redactar redacta|scrivere scrivi redigere|escrever escreva redigir|schrijven schrijf
open|öffnen öffne offen offene offenen aufmachen mach~auf geöffnet|ouvrir ouvre ouvert ouverte ouverts ouvertes|abrir abre abierto abierta abiertos abiertas|aprire apri aperto aperta aperti aperte|abrir abra aberto aberta abertos abertas|openen openstaande open
close|schließen schliesse schließe zumachen abschließen mach~zu schließ~ab geschlossen|fermer clôturer ferme clore fermé|cerrar cierra cerrado cierre|chiudere chiudi chiuso chiuda|fechar feche encerrar fechado encerre|sluiten sluit afsluiten gesloten sluit~af
complete finish|abschließen beenden fertigstellen erledigen beende erledige|terminer finir achever termine|terminar finalizar acabar completar termina|completare terminare finire concludere termina completa|terminar concluir finalizar completar conclua|afronden voltooien beëindigen afmaken rond~af
done|erledigt fertig abgeschlossen|terminé fini fait|hecho terminado completado|fatto completato finito|feito concluído|klaar gedaan afgerond
start|starten beginnen anfangen beginne starte losgehen fang~an|démarrer commencer lancer démarre lance débuter|empezar iniciar comenzar inicia empieza arrancar arranca|iniziare avviare cominciare avvia inizia|iniciar começar comece inicie|starten beginnen start begin
stop|stoppen anhalten beenden aufhören stopp halte~an|arrêter stopper arrête|parar detener detén para|fermare ferma smettere interrompere interrompi|parar pare interromper|stoppen stop ophouden
pause|pausieren unterbrechen|mettre_en_pause interrompre|pausar pausa|mettere_in_pausa pausa|pausar pausa|pauzeren pauze
continue resume|fortsetzen weitermachen setze~fort|continuer reprendre reprends|continuar reanudar seguir|continuare riprendere riprendi|continuar retomar|doorgaan hervatten verdergaan
restart|neustarten neustart starte~neu|redémarrer relancer redémarre|reiniciar reinicia|riavviare riavvia|reiniciar reinicie|herstarten opnieuw_starten
run execute|ausführen laufen durchführen führe~aus führe~durch|exécuter exécute lancer|ejecutar ejecuta correr|eseguire esegui lanciare|executar execute rodar rode|uitvoeren voer~uit draaien
send|senden schicken schick schicke sende verschicken versenden abschicken zusenden|envoyer envoie envoyez expédier adresser|enviar envía mandar manda envíale mándale envíe|inviare invia mandare manda spedire spedisci|enviar envie mandar mande|versturen sturen stuur verstuur verzenden verzend zenden
reply answer|antworten beantworten antworte beantworte antwort|répondre réponds réponse répondez|responder contestar responde contesta respuesta|rispondere rispondi risposta|responder responda resposta|antwoorden beantwoorden antwoord beantwoord
forward|weiterleiten leite~weiter|transférer faire_suivre transfère|reenviar reenvía|inoltrare inoltra girare|encaminhar encaminhe reencaminhar|doorsturen stuur~door
post publish|posten veröffentlichen publizieren poste|publier poster publie|publicar publica|pubblicare pubblica|publicar publique postar poste|plaatsen publiceren plaats posten
share|teilen freigeben gib~frei teile|partager partage|compartir comparte|condividere condividi|compartilhar partilhar compartilhe partilhe|delen deel
invite|einladen lade~ein lad~ein|inviter invite invitez|invitar invita|invitare invita|convidar convide|uitnodigen nodig~uit
call phone|anrufen telefonieren rufe~an ruf~an|appeler téléphoner appelle|llamar telefonear llama|chiamare telefonare chiama|ligar telefonar ligue|bellen opbellen bel
assign|zuweisen zuordnen weise~zu zuteilen weis~zu teile~zu übertragen übergib|assigner attribuer affecter assigne attribue confier|asignar asigna atribuir asigne|assegnare assegna attribuire|atribuir designar atribua|toewijzen wijs~toe toekennen
move|verschieben bewegen verschiebe verlegen verlege umziehen|déplacer déplace bouger|mover mueve trasladar desplazar|spostare sposta muovere|mover mova deslocar|verplaatsen verplaats verschuiven
reschedule postpone|verschieben verlegen umplanen aufschieben|reporter décaler repousser reprogrammer reporte décale|aplazar posponer reprogramar aplaza pospón|rimandare posticipare rinviare rimanda sposta|adiar remarcar reagendar adie|verzetten uitstellen verzet stel~uit verschuif
copy|kopieren kopiere vervielfältigen|copier copie recopier|copiar copia|copiare copia|copiar copie|kopiëren kopieer
duplicate|duplizieren verdoppeln doppelt doppelte doppelten duplikat|dupliquer doublon doublons en_double|duplicar duplicado duplicados duplicada|duplicare duplicato duplicati doppione doppioni doppi|duplicar duplicado duplicados duplicada|dupliceren dubbel dubbele
save store|speichern sichern speichere merken abspeichern ablegen|enregistrer sauvegarder enregistre sauvegarde stocker|guardar guarda almacenar grabar guarde|salvare salva memorizzare conservare|salvar guardar salve guarde armazenar|opslaan sla~op bewaren bewaar
load|laden lade|charger charge|cargar carga|caricare carica|carregar carregue|laden laad
upload|hochladen lade~hoch lad~hoch|téléverser mettre_en_ligne téléverse|subir sube cargar|caricare carica|enviar_arquivo subir carregar|uploaden upload
download|herunterladen runterladen lade~herunter lade~runter downloaden|télécharger télécharge|descargar descarga bajar|scaricare scarica|baixar baixe descarregar|downloaden download binnenhalen
import|importieren importiere einlesen|importer importe|importar importa|importare importa|importar importe|importeren importeer
export|exportieren exportiere ausgeben|exporter exporte|exportar exporta|esportare esporta|exportar exporte|exporteren exporteer
attach|anhängen beifügen hänge~an häng~an füge~bei|joindre attacher joins|adjuntar adjunta|allegare allega|anexar anexe|bijvoegen voeg~bij
link connect|verknüpfen verbinden verknüpfe verbinde verlinken verlinke koppeln|lier relier associer lie relie|vincular enlazar conectar vincula enlaza relacionar|collegare collega connettere|vincular ligar conectar vincule|koppelen verbinden koppel verbind linken
unlink separate|trennen lösen entkoppeln|délier séparer dissocier détacher|desvincular separar desconectar|scollegare separare|desvincular separar|ontkoppelen loskoppelen scheiden
merge|zusammenführen vereinigen zusammenlegen führe~zusammen lege~zusammen fasse~zusammen|fusionner fusionne réunir|fusionar combinar unir fusiona une|unire fondere unisci accorpare|mesclar juntar unir mescle fundir|samenvoegen voeg~samen
split|aufteilen teilen spalten teile~auf|diviser découper scinder|dividir partir divide|dividere suddividere dividi|dividir divida|splitsen opdelen splits
combine|kombinieren verbinden|combiner|combinar|combinare|combinar|combineren
compare|vergleichen vergleiche vergleich gegenüberstellen|comparer compare comparaison|comparar compara comparación|confrontare confronta paragonare confronto|comparar compare comparação|vergelijken vergelijk vergelijking
check|prüfen überprüfen kontrollieren prüfe überprüfe checken nachsehen sieh~nach schau~nach|vérifier contrôler vérifie vérification|comprobar verificar revisar comprueba verifica revisa|controllare verificare controlla verifica|verificar conferir checar verifique confira|controleren nagaan controleer check
test|testen probieren ausprobieren|tester essayer|probar prueba|testare provare|testar experimentar teste|testen proberen
validate|validieren bestätigen|valider valide|validar valida|validare convalidare|validar valide|valideren
confirm|bestätigen bestätige|confirmer confirme|confirmar confirma|confermare conferma|confirmar confirme|bevestigen bevestig
approve|genehmigen freigeben genehmige|approuver approuve|aprobar aprueba|approvare approva|aprovar aprove|goedkeuren keur~goed
reject decline|ablehnen zurückweisen lehne~ab|refuser rejeter décliner refuse|rechazar declinar rechaza|rifiutare declinare rifiuta|rejeitar recusar recuse rejeite|afwijzen weigeren afslaan wijs~af weiger
accept|annehmen akzeptieren nimm~an zusagen sage~zu|accepter accepte|aceptar acepta|accettare accetta|aceitar aceite|accepteren aannemen accepteer
submit|einreichen abgeben reiche~ein gib~ab|soumettre remettre soumets déposer|presentar entregar enviar entrega|presentare consegnare consegna|submeter entregar entregue|indienen inleveren dien~in lever~in
count|zählen zähle|compter compte|contar cuenta|contare conta|contar conte|tellen tel
calculate|berechnen rechnen ausrechnen berechne rechne~aus|calculer calcule|calcular calcula|calcolare calcola|calcular calcule|berekenen bereken rekenen
sum|summieren addieren summe zusammenzählen|additionner sommer somme|sumar suma|sommare somma|somar soma some|optellen som
convert|umrechnen umwandeln konvertieren rechne~um wandle~um|convertir convertis conversion|convertir convierte|convertire converti|converter converta|omrekenen omzetten converteren reken~om zet~om
translate|übersetzen übersetze übersetzung|traduire traduis traduction|traducir traduce traducción|tradurre traduci traduzione|traduzir traduza tradução|vertalen vertaal vertaling
summarize|zusammenfassen fasse~zusammen fass~zusammen zusammenfassung|résumer résume résumé|resumir resume resumen|riassumere riassumi riassunto riepilogo|resumir resuma resumo|samenvatten vat~samen samenvatting
analyze|analysieren auswerten analysiere analyse werte~aus auswertung|analyser analyse|analizar analiza análisis|analizzare analizza analisi|analisar analise análise|analyseren analyseer analyse
measure|messen|mesurer mesure|medir mide|misurare misura|medir meça|meten meet
estimate|schätzen schätzung schätze|estimer estimation estime|estimar estimación estima|stimare stima|estimar estimativa|schatten schatting inschatten
predict forecast|vorhersagen prognose vorhersage voraussage|prévoir prévision prévisions prédire|predecir pronosticar pronóstico previsión|prevedere previsione previsioni|prever previsão|voorspellen voorspelling verwachting
generate|generieren erzeugen generiere|générer génère|generar genera|generare genera|gerar gere|genereren genereer
draw|zeichnen male|dessiner dessine|dibujar dibuja|disegnare disegna|desenhar desenhe|tekenen teken
print|drucken ausdrucken drucke|imprimer imprime|imprimir imprime|stampare stampa|imprimir imprima|printen afdrukken print
scan|scannen einscannen|scanner numériser|escanear|scansionare|escanear digitalizar|scannen
sign|unterschreiben signieren|signer|firmar firma|firmare firma|assinar assine|ondertekenen teken
log record|protokollieren aufzeichnen eintragen buchen verbuchen erfassen trage~ein trag~ein buche notieren|consigner enregistrer saisir noter saisis|registrar registra anotar apuntar anota|registrare registra annotare annota|registrar registre anotar anote|registreren vastleggen registreer noteren noteer boeken leg~vast
remember|erinnern merken erinnere merke|rappeler souvenir rappelle retenir|recordar recuerda recuérdame acordar|ricordare ricorda ricordami|lembrar lembre recordar|herinneren onthouden herinner onthoud
forget|vergessen vergiss|oublier oublie|olvidar olvida|dimenticare dimentica|esquecer esqueça|vergeten vergeet
set|setzen setze einstellen festlegen stelle~ein stell~ein lege~fest stellen|définir régler fixer mettre mets mettez|establecer poner fijar configurar pon ponga establece|impostare imposta mettere metti fissare|definir colocar pôr defina coloque ponha|instellen zetten zet stel~in
configure|konfigurieren einrichten richte~ein|configurer paramétrer configure|configurar configura|configurare configura|configurar configure|configureren inrichten richt~in
enable activate|aktivieren einschalten aktiviere schalte~ein|activer active allumer|activar activa habilitar encender enciende|attivare attiva abilitare accendere accendi|ativar ative habilitar ligar acender|activeren inschakelen aanzetten schakel~in zet~aan activeer
disable deactivate|deaktivieren ausschalten abschalten deaktiviere schalte~aus schalte~ab sperren|désactiver désactive éteindre|desactivar desactiva deshabilitar apagar|disattivare disattiva disabilitare spegnere spegni|desativar desative desabilitar desligar|deactiveren uitschakelen uitzetten schakel~uit zet~uit
turn on|anschalten einschalten anmachen mach~an schalte~an|allumer allume|encender enciende|accendere accendi|ligar ligue acender acenda|aanzetten aandoen zet~aan doe~aan
turn off|ausschalten ausmachen mach~aus schalte~aus|éteindre éteins|apagar apaga|spegnere spegni|desligar desligue|uitzetten uitdoen zet~uit doe~uit
lock|sperren abschließen|verrouiller verrouille|bloquear bloquea|bloccare blocca|bloquear trancar bloqueie|vergrendelen blokkeren
unlock|entsperren freischalten|déverrouiller|desbloquear|sbloccare|desbloquear|ontgrendelen
archive|archivieren archiviere|archiver archive|archivar archiva|archiviare archivia|arquivar arquive|archiveren archiveer
restore|wiederherstellen stelle~her stell~her zurückholen hole~zurück|restaurer rétablir restaure|restaurar restaura recuperar recupera|ripristinare ripristina recuperare recupera|restaurar restaure recuperar|herstellen terugzetten herstel zet~terug
undo|rückgängig|défaire|deshacer deshaz|disfare|desfazer desfaça|ongedaan
back up|sichern sicherung|sauvegarder|respaldar|salvare|fazer_backup|back-uppen
install|installieren installiere|installer installe|instalar instala|installare installa|instalar instale|installeren installeer
deploy|ausrollen bereitstellen stelle~bereit|déployer déploie|desplegar despliega|distribuire rilasciare|implantar implante publicar|uitrollen rol~uit
build|bauen baue|construire construis bâtir|construir construye|costruire costruisci|construir construa|bouwen bouw
review|überprüfen begutachten|relire revoir|revisar revisa|revisionare rivedere|revisar revise|beoordelen nakijken
comment|kommentieren kommentar kommentiere anmerkung|commenter commentaire commente|comentar comentario|commentare commento|comentar comentário|reageren opmerking commentaar reactie
like react|reagieren gefällt|réagir aimer|reaccionar gustar|reagire piacere|reagir curtir|reageren liken
subscribe follow|abonnieren folgen beobachten folge|suivre abonner surveiller suis abonne|seguir suscribir sigue vigilar|seguire segui iscrivere|seguir siga assinar acompanhar|volgen abonneren volg
unsubscribe|abbestellen|désabonner|darse_de_baja|disiscrivere|cancelar_inscrição|uitschrijven
watch|beobachten überwachen zuschauen|surveiller observer|observar vigilar|osservare sorvegliare|observar assistir|bekijken observeren
monitor|überwachen|surveiller superviser|monitorizar supervisar monitorear|monitorare|monitorar|bewaken monitoren
notify|benachrichtigen verständigen benachrichtige|notifier avertir prévenir notifie préviens|notificar avisar avisa notifica|notificare avvisare avvisa avvisami|notificar avisar avise|waarschuwen melden waarschuw verwittigen
mark|markieren kennzeichnen markiere|marquer marque|marcar marca|segnare contrassegnare segna marcare|marcar marque|markeren markeer
pin|anheften anpinnen hefte~an pinne~an|épingler épingle|fijar anclar fija|fissare appuntare fissa|fixar fixe|vastpinnen vastmaken vastzetten pin~vast maak~vast zet~vast
filter|filtern filtere|filtrer filtre|filtrar filtra filtro|filtrare filtra filtro|filtrar filtre filtro|filteren
sort|sortieren ordnen sortiere|trier classer trie|ordenar clasificar ordena|ordinare ordina|ordenar classificar ordene|sorteren ordenen sorteer
group|gruppieren|grouper regrouper|agrupar|raggruppare|agrupar|groeperen
select choose|auswählen wählen wähle aussuchen|choisir sélectionner choisis|elegir seleccionar escoger elige|scegliere selezionare scegli|escolher selecionar escolha|kiezen selecteren kies
recommend|empfehlen empfehlung empfiehl vorschlagen schlage~vor|recommander conseiller recommande suggérer|recomendar recomienda sugerir aconsejar|consigliare raccomandare consiglia suggerire|recomendar recomende sugerir|aanbevelen aanraden raad~aan voorstellen
explain|erklären erläutern erkläre|expliquer explique|explicar explica|spiegare spiega|explicar explique|uitleggen leg~uit verklaren
describe|beschreiben beschreibe|décrire décris|describir describe|descrivere descrivi|descrever descreva|beschrijven beschrijf
know|wissen kennen weißt|savoir connaître sais|saber conocer sé|sapere conoscere so|saber conhecer sei|weten kennen weet
think|denken meinen|penser|pensar|pensare|pensar|denken
help|helfen hilf hilfe|aider aide|ayudar ayuda|aiutare aiuta aiuto|ajudar ajude ajuda|helpen help hulp
buy|kaufen kauf besorgen einkaufen|acheter achète achat|comprar compra|comprare compra acquistare acquisto|comprar compre compra|kopen koop aankoop
sell|verkaufen verkauf|vendre vends vente|vender vende venta|vendere vendi vendita|vender venda|verkopen verkoop
order|bestellen bestellung bestelle auftrag|commander commande|pedir pedido encargar pide|ordinare ordine ordina|encomendar pedir pedido encomenda|bestellen bestelling bestel
pay|bezahlen zahlen bezahle überweisen|payer régler paie|pagar paga abonar|pagare paga|pagar pague|betalen betaal
transfer|überweisen übertragen überweise überweisung|transférer virer virement|transferir transfiere transferencia|trasferire bonifico trasferisci|transferir transfira transferência|overmaken overschrijven overschrijving
book reserve|buchen reservieren buche reserviere reservierung buchung|réserver réserve réservation|reservar reserva|prenotare prenota prenotazione|reservar reserve marcar|boeken reserveren boek reserveer reservering
rent|mieten vermieten miete|louer location|alquilar alquiler|affittare noleggiare affitto|alugar aluguel|huren huur
return|zurückgeben zurückschicken rückgabe|retourner rendre retour|devolver devolución|restituire reso|devolver devolução|terugsturen retourneren retour
deliver ship|liefern lieferung versand zustellen|livrer livraison|entregar envío entrega|consegnare spedizione consegna|entregar entrega envio|leveren bezorgen levering bezorging
track|verfolgen nachverfolgen|suivre suivi|rastrear seguimiento|tracciare monitorare|rastrear acompanhar|volgen traceren
plan|planen einplanen plane verplanen plane~ein|planifier prévoir planifie|planificar planear planifica|pianificare pianifica programmare|planejar planear planeje|plannen inplannen plan
schedule|ansetzen terminieren einplanen setze~an|programmer planifier|programar agendar programa agenda|programmare fissare programma|agendar programar agende marque|inplannen plannen plan~in
organize|organisieren|organiser organise|organizar organiza|organizzare organizza|organizar organize|organiseren
meet|treffen|rencontrer|reunirse encontrar|incontrare|encontrar reunir|ontmoeten afspreken
join|beitreten teilnehmen tritt~bei mitmachen|rejoindre participer rejoins adhérer|unirse unirme participar únete entrar|partecipare unirsi entrare unirmi|participar entrar juntar entre|deelnemen meedoen aansluiten lid_worden
leave|verlassen austreten verlasse|quitter partir quitte|salir abandonar dejar|lasciare uscire abbandonare lascia|sair deixar abandonar saia|verlaten weggaan verlaat
go|gehen geh fahren|aller|ir|andare|ir|gaan
drive|fahren fahre|conduire|conducir manejar|guidare|dirigir conduzir|rijden
fly|fliegen|voler|volar|volare|voar|vliegen
travel|reisen verreisen|voyager|viajar|viaggiare|viajar|reizen
walk|laufen spazieren|marcher|caminar|camminare|caminhar|lopen wandelen
play|spielen abspielen spiel spiele~ab wiedergeben|jouer lire joue|reproducir jugar tocar pon reproduce|riprodurre suonare giocare riproduci|tocar reproduzir jogar toque|afspelen spelen speel~af speel
listen|hören anhören|écouter écoute|escuchar oír|ascoltare ascolta|ouvir escutar ouça|luisteren
speak|sprechen|parler|hablar|parlare|falar|spreken praten
learn|lernen|apprendre|aprender|imparare|aprender|leren
teach|lehren|enseigner|enseñar|insegnare|ensinar|onderwijzen
work|arbeiten|travailler|trabajar|lavorare|trabalhar|werken
use|benutzen verwenden nutzen benutze verwende|utiliser employer utilise|usar utilizar usa|usare utilizzare usa|usar utilizar use|gebruiken gebruik
need|brauchen benötigen|nécessiter|necesitar|servire occorrere|precisar|nodig_hebben
log in|anmelden einloggen melde~an|connecter identifier|iniciar_sesión entrar|accedere|fazer_login|inloggen aanmelden
log out|abmelden ausloggen melde~ab|déconnecter|cerrar_sesión|disconnettere|fazer_logout|uitloggen afmelden
register sign up|registrieren anmelden|inscrire inscription|registrarse inscribir|iscriversi registrarsi|inscrever cadastrar cadastre|inschrijven registreren
encrypt|verschlüsseln|chiffrer crypter|cifrar encriptar|cifrare crittografare|criptografar cifrar|versleutelen
decrypt|entschlüsseln|déchiffrer|descifrar|decifrare|descriptografar|ontsleutelen
compress|komprimieren|compresser|comprimir|comprimere|compactar|comprimeren
extract|extrahieren entpacken|extraire|extraer|estrarre|extrair|uitpakken
replace|ersetzen ersetze austauschen|remplacer remplace|reemplazar sustituir reemplaza|sostituire sostituisci|substituir substitua|vervangen vervang
format|formatieren|formater|formatear|formattare|formatar|formatteren
clean empty|leeren säubern aufräumen bereinigen leere räume~auf|vider nettoyer vide|vaciar limpiar vacía limpia|svuotare pulire svuota|esvaziar limpar esvazie limpe|legen leegmaken opruimen schoonmaken leeg maak~leeg ruim~op
reset|zurücksetzen setze~zurück|réinitialiser réinitialise|restablecer|reimpostare azzerare|redefinir|resetten
refresh|auffrischen|rafraîchir actualiser|refrescar|aggiornare|atualizar|verversen
rebuild|neu_aufbauen neu_bauen baue~auf|reconstruire reconstruis|reconstruir reconstruye|ricostruire ricostruisci|reconstruir reconstrua|herbouwen opnieuw_opbouwen
mute snooze|stummschalten schlummern|mettre_en_sourdine reporter|silenciar posponer|silenziare posticipare|silenciar adiar|dempen sluimeren
block|blockieren|bloquer|bloquear|bloccare|bloquear|blokkeren
report|melden berichten melde|signaler rapporter signale|informar reportar reporta denunciar|segnalare riferire segnala|relatar reportar relate denunciar|melden rapporteren meld
happen|passieren geschehen passiert geschah los|passer arriver passé|pasar suceder ocurrir pasó ocurrió|succedere accadere successo|acontecer ocorrer aconteceu|gebeuren gebeurd
fail|fehlschlagen scheitern|échouer|fallar fracasar|fallire|falhar|mislukken
last take|dauern dauert|durer|durar tardar|durare|durar demorar|duren
cost|kosten kostet|coûter coûte|costar cuesta|costare costa|custar custa|kosten kost
arrive|ankommen|arriver|llegar|arrivare|chegar|aankomen
look|schauen gucken|regarder|mirar|guardare|olhar|kijken
rate|bewerten bewerte|évaluer noter|valorar calificar evaluar|valutare|avaliar avalie|beoordelen waarderen
improve|verbessern|améliorer|mejorar|migliorare|melhorar|verbeteren
increase|erhöhen|augmenter|aumentar|aumentare|aumentar|verhogen
decrease reduce|verringern senken reduzieren|réduire diminuer|reducir disminuir bajar|ridurre diminuire|reduzir diminuir|verlagen verminderen
limit|begrenzen beschränken|limiter|limitar|limitare|limitar|beperken
allow|erlauben|autoriser permettre|permitir|permettere consentire|permitir|toestaan
grant|gewähren erteilen|accorder octroyer|conceder otorgar|concedere|conceder|verlenen
promote|befördern|promouvoir|promover ascender|promuovere|promover|promoveren
hire|einstellen|embaucher recruter|contratar|assumere|contratar|aannemen
label tag|etikettieren taggen|étiqueter taguer|etiquetar etiqueta|etichettare taggare|etiquetar marcar|labelen taggen
cook|kochen|cuisiner cuire|cocinar|cucinare|cozinhar|koken
eat|essen|manger|comer|mangiare|comer|eten
mention|erwähnen erwähnt erwähnung|mentionner mention cité|mencionar mención mencionado|menzionare menzione citato|mencionar menção citado|vermelden genoemd vermelding noemen
hide|ausblenden verstecken|masquer cacher|ocultar esconder|nascondere|ocultar esconder|verbergen
wait|warten|attendre|esperar|aspettare|esperar|wachten
ask|fragen frage frag|demander demande|preguntar pregunta|chiedere domandare chiedi|perguntar pergunte|vragen vraag
change password|passwort_ändern|changer_le_mot_de_passe|cambiar_la_contraseña|cambiare_la_password|mudar_a_senha|wachtwoord_wijzigen
visit|besuchen|visiter|visitar|visitare|visitar|bezoeken
sleep|schlafen|dormir|dormir|dormire|dormir|slapen
weigh|wiegen|peser|pesar|pesare|pesar|wegen
contribute|beitragen beigetragen trage~bei|contribuer contribué|contribuir contribuido|contribuire contribuito|contribuir contribuiu|bijdragen bijgedragen
stand|stehen steht|être_debout|estar|stare|ficar|staan staat ervoor
belong|gehören gehört|appartenir appartient|pertenecer pertenece|appartenere appartiene|pertencer pertence|behoren hoort
depend|abhängen hängt~ab abhängig|dépendre dépend|depender depende|dipendere dipende|depender depende|afhangen hangt~af afhankelijk
put|legen stecken lege tue packen pack|mettre poser pose ranger range|poner meter mete colocar|mettere mettilo porre|pôr colocar põe bote|zetten leggen leg doe
bring|bringen bring|apporter amener apporte|traer llevar trae|portare porta|trazer levar traga|brengen breng
take|nehmen nimm|prendre prends|tomar coger toma|prendere|levar pegar tomar|nemen neem pak
keep|behalten aufbewahren behalte|garder conserver garde|conservar mantener quedarse|tenere mantenere tieni|manter guardar mantenha|houden behouden houd
become|werden|devenir|convertirse|diventare|tornar|worden
come|kommen komm kommt|venir viens vient|venir ven viene|venire vieni viene|vir venha vem|komen kom komt
stay|bleiben bleibt|rester reste|quedar permanecer|restare rimanere|ficar permanecer|blijven blijft
miss|verpassen verpasst vermissen|rater raté manquer|perderse perdí|perdere perso|perder perdi|missen gemist
spend|verbringen ausgeben verbracht|passer dépenser passé dépensé|gastar pasar gastado|spendere trascorrere speso|gastar passar gasto gastou|besteden uitgeven besteed
live|leben wohnen|vivre habiter|vivir|vivere abitare|viver morar|leven wonen
try|versuchen probiere versuche|essayer essaie|intentar intenta|provare prova tentare|tentar tente|proberen probeer
request|anfordern beantragen fordere~an anfrage|demander solliciter|solicitar pedir|richiedere richiedi|solicitar pedir solicite|aanvragen vraag~aan verzoek
contain|enthalten enthält beinhalten|contenir contient|contener contiene incluir|contenere contiene|conter contém incluir|bevatten bevat
mean|bedeuten bedeutet|signifier signifie|significar significa|significare significa|significar significa|betekenen betekent
solve resolve|lösen gelöst auflösen|résoudre résolu|resolver resuelto solucionar resuelve|risolvere risolto risolvi|resolver resolvido resolva|oplossen opgelost
discard|verwerfen verwirf|abandonner|descartar|scartare|descartar|weggooien
hold|halten halte|tenir retenir|sostener|tenere|segurar|vasthouden
receive|erhalten empfangen bekommen|recevoir reçois reçu|recibir recibe recibido|ricevere ricevuto|receber recebi recebido|ontvangen gekregen
expect|erwarten|attendre|esperar|aspettarsi|esperar|verwachten
overwrite|überschreiben|écraser|sobrescribir|sovrascrivere|sobrescrever|overschrijven
swap exchange|tauschen vertauschen|échanger|intercambiar|scambiare|trocar permutar|ruilen
disturb|stören gestört|déranger dérangé|molestar|disturbare|incomodar perturbar|storen
tick check off|abhaken hake~ab|cocher coche|tachar marcar|spuntare|ticar|afvinken vink~af
agree|zustimmen einverstanden|accepter d'accord|aceptar acuerdo|concordare d'accordo|concordar|instemmen akkoord
attend|teilnehmen besuchen|assister|asistir asistiré|partecipare|comparecer participar|bijwonen
cut|schneiden ausschneiden|couper|cortar|tagliare|cortar|knippen
paste|einfügen|coller|pegar|incollare|colar|plakken
hear|hören|entendre|oír|sentire|ouvir|horen
win|gewinnen gewonnen|gagner|ganar|vincere|ganhar|winnen
lose|verlieren verloren|perdre perdu|perder|perdere|perder|verliezen kwijt
change status|weiterschalten|faire_avancer|cambiar_el_estado|cambiare_stato|mudar_o_status|status_wijzigen
speed up|beschleunigen|accélérer|acelerar|accelerare|acelerar|versnellen
observe notice|bemerken|remarquer|notar|notare|notar|opmerken
underestimate|unterschätzen unterschätzt|sous-estimer sous-estimé|subestimar subestimado|sottovalutare sottostimato|subestimar subestimado|onderschatten
join together|vereinen|réunir|reunir|riunire|reunir|bundelen
sign in|einloggen|se_connecter|iniciar_sesión|accedere|entrar|inloggen
= verb|ru|pl|zh|ja
create|создать создай создайте создавать завести заведи создание|utwórz utworzyć stwórz stworzyć załóż tworzyć utworzenie|创建 新建 建立 建一个 建个 建|作成 作って 作る 新規作成 立てて
make|сделать сделай делать|zrób zrobić|做 制作|作る
add|добавить добавь добавьте добавлять|dodaj dodać dodawać dopisz|添加 增加 加入 加上 加|追加 足して 加えて 加える
delete|удалить удали удалите стереть сотри удаление|usuń usunąć skasuj skasować usuwanie|删除 删掉 删 删了|削除 消して 消す
remove|убрать убери снять сними|usuń zabierz zdejmij|移除 去掉 去除|取り除いて 外して 外す 除外
cancel|отменить отмени отмена|anuluj anulować odwołaj odwołać|取消|キャンセル 取り消し 取り消して 中止
update|обновить обнови обновление|zaktualizuj zaktualizować aktualizuj|更新|更新 アップデート
change|изменить измени поменять поменяй сменить изменение изменения|zmień zmienić zmiana zmiany zmian|修改 更改 改变 改成 改 变更|変更 変えて 変える
edit|редактировать отредактировать отредактируй правка|edytuj edytować|编辑|編集
rename|переименовать переименуй|zmień_nazwę przemianuj|重命名 改名|名前を変更 名前を変えて リネーム 改名
fix|исправить исправь починить почини|napraw naprawić popraw poprawić|修复 修正 改正|修正 直して 直す 修理
show|показать покажи покажите показывать вывести выведи|pokaż pokazać wyświetl wyświetlić|显示 展示 给我看 看看|表示 見せて 示して
see|увидеть посмотреть посмотри смотреть|zobacz zobaczyć obejrzeć|查看 看 看一下|見る 見たい 見て 確認
list|список списком перечисли перечислить перечень|lista listę wylicz wymień listy|列出 列表 清单 一览|一覧 リスト 列挙
get|получить получи достать|pobierz pobrać uzyskaj|获取 得到 取得 拿到|取得 得る
give|дай дать дайте|daj dać podaj|给|くれ ちょうだい
tell|скажи сказать расскажи|powiedz powiedzieć|告诉 说 告诉我|教えて 教えてください
find|найти найди найдите поищи|znajdź znaleźć odszukaj|找到 查找 找 找出|見つけて 探して 見つける 探す
search|искать поиск ищи|szukaj wyszukaj szukać wyszukiwanie przeszukaj|搜索 搜 检索 查询 查|検索 調べて サーチ
read|прочитать прочитай читать прочти|przeczytaj czytać przeczytać odczytaj|读 阅读 读取|読む 読んで 読み取り
write|написать напиши писать запиши|napisz napisać zapisz|写 编写 撰写|書く 書いて 投稿
open|открыть открой открытые открытых открытый|otwórz otworzyć otwarte otwartych|打开 开 未关闭 未完成|開く 開いて オープン 未完了 未解決
close|закрыть закрой закрытые|zamknij zamknąć zamknięte|关闭|閉じる 閉じて クローズ
complete finish|завершить заверши закончить закончи|zakończ zakończyć ukończ skończ|完成 结束|完了 終了 終わらせて 終える
start|начать начни запустить запусти старт|zacznij rozpocznij uruchom start włącz|开始 启动|開始 始めて 始める スタート 起動
stop|остановить останови прекратить стоп|zatrzymaj zatrzymać przerwij|停止 停|停止 止めて 止める ストップ
run execute|выполнить выполни запустить|wykonaj wykonać uruchom|运行 执行|実行 走らせて
send|отправить отправь послать пошли отправьте|wyślij wysłać prześlij|发送 发 寄 发给|送信 送って 送る
reply answer|ответить ответь ответ|odpowiedz odpowiedzieć odpowiedź|回复 回答 答复|返信 返事 回答 答えて
forward|переслать перешли|przekaż|转发|転送
post publish|опубликовать опубликуй выложить|opublikuj opublikować|发布 发表|投稿 公開
share|поделиться поделись|udostępnij udostępnić|分享 共享|共有 シェア
invite|пригласить пригласи|zaproś zaprosić|邀请|招待 誘って
assign|назначить назначь поручить поручи|przypisz przypisać przydziel|分配 指派 分派 交给|割り当て 割り当てて アサイン 担当に
move|переместить перемести перенести перенеси передвинуть|przenieś przenieść przesuń|移动 移到 移|移動 動かして 移して
reschedule postpone|перенести перенеси отложить отложи|przełóż przełożyć odłóż|改期 推迟 延期 改到|延期 日程変更 ずらして リスケ
copy|скопировать скопируй копировать копия|skopiuj skopiować kopiuj kopia|复制 拷贝|コピー 複製
duplicate|дубликат дубликаты дублирующиеся повторяющиеся|duplikat duplikaty zduplikowane powtarzające|重复|重複
save store|сохранить сохрани|zapisz zapisać zachowaj|保存 存储|保存 セーブ
saved|сохранённый сохраненные сохранённые сохранённых|zapisane zapisanych zapisany|已保存|保存済み 保存した
upload|загрузить загрузи залить|prześlij wgraj załaduj|上传|アップロード
download|скачать скачай|pobierz ściągnij|下载|ダウンロード
import|импорт импортировать импортируй|importuj zaimportuj zaimportować|导入|インポート 取り込んで
export|экспорт экспортировать экспортируй|eksportuj wyeksportuj|导出|エクスポート 書き出し
attach|прикрепить прикрепи приложить|załącz dołącz załączyć|附加 附上|添付
link connect|связать свяжи соединить привязать привяжи|połącz powiąż połączyć powiązać|关联 链接 连接|リンク 紐付け 関連付け つなげて
unlink separate|отвязать отвяжи разъединить|odłącz rozłącz|取消关联 断开|リンク解除 切り離し
merge|объединить объедини слить|scal połącz scalić|合并|統合 マージ 結合
split|разделить раздели|podziel|拆分 分割|分割
compare|сравнить сравни сравнение|porównaj porównać porównanie|比较 对比|比較 比べて
check|проверить проверь проверка|sprawdź sprawdzić zweryfikuj|检查 核对 验证|チェック 確認 検査 検証
test|тест тестировать протестируй|test testuj przetestuj|测试|テスト
confirm|подтвердить подтверди|potwierdź|确认|確認
approve|одобрить одобри утвердить|zatwierdź zaakceptuj|批准 审批|承認
reject decline|отклонить отклони отказаться|odrzuć odmów|拒绝|拒否 断って 辞退
accept|принять прими|przyjmij zaakceptuj akceptuj|接受|承諾 受け入れ 受諾
submit|сдать подать подай отправить|złóż zatwierdź prześlij|提交|提出
count|посчитать посчитай сосчитай|policz zlicz|统计 计数 数|数えて カウント 集計
calculate|вычислить рассчитать рассчитай посчитай|oblicz obliczyć|计算|計算
convert|конвертировать переведи преобразовать|przelicz przekonwertuj konwertuj|转换 换算|変換 換算
translate|перевести переведи перевод|przetłumacz tłumacz|翻译|翻訳 訳して
summarize|обобщить резюме подведи|podsumuj streść podsumowanie|总结 概括 摘要|要約 まとめて まとめ
analyze|анализировать проанализируй анализ|przeanalizuj analizuj analiza|分析|分析 解析
estimate|оценить оценка оценки|oszacuj szacunek szacowanie|估计 估算|見積もり 見積り 推定
forecast predict|прогноз предсказать|prognoza przewiduj|预测 预报|予測 予報
generate|сгенерировать сгенерируй|wygeneruj generuj|生成|生成
print|распечатать распечатай|wydrukuj|打印|印刷
log record|записать запиши зафиксируй|zapisz zarejestruj odnotuj zaloguj|记录 登记|記録 登録
remember|запомни запомнить напомни напомнить|zapamiętaj przypomnij pamiętaj|记住 提醒|覚えて 思い出させて リマインド
forget|забудь забыть|zapomnij|忘记|忘れて
set|установить установи поставить поставь задать задай|ustaw ustawić|设置 设定 设为|設定 セット
configure|настроить настрой|skonfiguruj|配置|構成
enable activate|включить включи активировать|włącz aktywuj|启用 激活 开启|有効 オンにして
disable deactivate|выключить выключи отключить отключи деактивировать деактивируй|wyłącz dezaktywuj|禁用 停用 关掉|無効 オフにして 無効化
turn on|включи|włącz|打开|つけて オン
turn off|выключи|wyłącz zgaś|关掉|消して オフ
archive|архивировать архивируй заархивируй архив|zarchiwizuj archiwizuj archiwum|归档 存档|アーカイブ
restore|восстановить восстанови|przywróć przywrócić odzyskaj|恢复 还原|復元 元に戻して 戻して
install|установить|zainstaluj|安装|インストール
build|собрать построить|zbuduj|构建 建造|ビルド 構築
rebuild|перестроить перестрой пересобери|przebuduj odbuduj|重建|再構築 作り直して
review|проверить рецензия|przejrzyj recenzja|审查 评审|レビュー
comment|комментарий комментарии комментариев комментировать прокомментируй|komentarz komentarze komentarzy skomentuj|评论 留言|コメント
subscribe follow|подписаться подпиши следить|subskrybuj obserwuj śledź|订阅 关注|フォロー 購読
watch|следить наблюдать|obserwuj|关注 观察|ウォッチ 監視
notify|уведомить уведоми сообщить сообщи|powiadom zawiadom|通知|通知 知らせて
mark|отметить отметь пометить пометь|oznacz oznaczyć zaznacz|标记 标为 标|マーク 印
pin|закрепить закрепи|przypnij|置顶 固定|ピン留め 固定
filter|фильтр отфильтруй|filtruj|筛选 过滤|フィルター 絞り込み
sort|сортировать отсортируй|sortuj posortuj|排序|並べ替え ソート
recommend|порекомендуй рекомендовать посоветуй рекомендации|poleć zarekomenduj zaproponuj|推荐 建议|おすすめ 推薦 勧めて 提案
explain|объясни объяснить|wyjaśnij wytłumacz|解释 说明|説明
describe|описать опиши|opisz|描述|説明
buy|купить купи|kup kupić|买 购买|買う 買って 購入
sell|продать|sprzedaj|卖 出售|売る
order|заказ заказать закажи заказы|zamów zamówienie zamówienia|订单 下单 订购|注文 オーダー
pay|оплатить заплатить оплати|zapłać zapłacić|付款 支付 付|支払い 払う 払って
transfer|перевод перевести|przelej przelew|转账 转|送金 振込
book reserve|забронировать забронируй бронь|zarezerwuj rezerwuj rezerwacja|预订 预约 预定|予約
plan|план планировать запланируй|zaplanuj plan planuj|计划 规划|計画 予定 プラン
join|присоединиться вступить вступи|dołącz wstąp|加入 参加|参加 入る 加入
leave|покинуть выйти покинь|opuść wyjdź|离开 退出|退出 抜ける 抜けて 離れる
play|играть включи проиграй|odtwórz graj zagraj|播放 玩|再生 かけて 遊ぶ
help|помоги помощь|pomóż pomoc|帮助|助けて ヘルプ
empty clean|очистить очисти опустошить|opróżnij wyczyść|清空 清理|空にして 掃除 クリア
reset|сбросить|zresetuj|重置|リセット
replace|заменить замени|zastąp zamień|替换|置き換え 置換
snooze|отложи отложить|odłóż drzemka|稍后提醒 推迟|スヌーズ 後で
report|сообщить отчёт отчет|zgłoś zgłosić raport|报告 举报|報告 レポート
happened|случилось произошло происходило|wydarzyło stało działo zdarzyło|发生|起きた あった 起こった
mention|упоминание упоминания упомянули упомянут|wzmianka wzmianki wspomniano|提到 提及 @我|メンション 言及
change role|сменить_роль|zmień_rolę|更改角色|役割変更
hand over assign|передай передать|przekaż przekazać|交给 转给|渡して 引き継いで 任せて
throw away delete|выброси выбросить|wyrzuć wyrzucić|扔掉|捨てて 捨てる
put|положи положить|połóż włóż|放 放到|置いて 入れて
miss|пропустил пропустила|przegapiłem ominęło|错过|見逃した 逃した
spend|потратил потрачено|spędziłem poświęciłem|花 花了|費やした かかった
try|попробуй|spróbuj|试|試して
solve resolve|решить реши решено|rozwiąż rozwiązać rozwiązane|解决|解決
receive|получить получил|otrzymać dostać|收到|受け取る 届いた
attend|посетить присутствовать|uczestniczyć wziąć_udział|出席 参加|出席
belong|принадлежит|należy|属于|属する
= noun|de|fr|es|it|pt|nl
issue|vorgang vorgänge problem ticket tickets|problème ticket tickets|incidencia incidencias problema ticket|segnalazione segnalazioni problema ticket|problema chamado chamados ticket|probleem melding ticket
task|aufgabe aufgaben to-do|tâche tâches|tarea tareas|compito compiti attività|tarefa tarefas|taak taken
bug error|fehler fehlermeldung|erreur erreurs bogue anomalie|error errores fallo fallos|errore errori difetto|erro erros defeito falha|fout fouten bug
project|projekt projekte|projet projets|proyecto proyectos|progetto progetti|projeto projetos|project projecten
milestone|meilenstein|jalon jalons étape|hito hitos|traguardo pietra_miliare milestone obiettivo|marco marcos|mijlpaal
board|brett tafel|tableau|tablero|bacheca lavagna|quadro|bord
workflow|arbeitsablauf|flux_de_travail|flujo_de_trabajo|flusso_di_lavoro|fluxo_de_trabalho|werkstroom
status|stand zustand|statut état|estado|stato|estado situação|toestand
priority|priorität dringlichkeit|priorité|prioridad|priorità|prioridade|prioriteit
urgent|dringend eilig|urgent urgente|urgente|urgente|urgente|dringend
assignee|bearbeiter zuständiger zuständig|responsable assigné|responsable asignado|assegnatario responsabile|responsável atribuído|verantwoordelijke toegewezen
member|mitglied mitglieder|membre membres|miembro miembros|membro membri|membro membros|lid leden
team|mannschaft team|équipe|equipo|squadra gruppo|equipe time equipa|ploeg
user|benutzer nutzer anwender|utilisateur utilisateurs|usuario usuarios|utente utenti|usuário usuários utilizador|gebruiker gebruikers
person people|person personen leute menschen|personne gens personnes|persona gente personas|persona persone gente|pessoa pessoas|persoon personen mensen
colleague|kollege kollegin kollegen|collègue collègues|colega compañero colegas|collega colleghi|colega colegas|collega collegas
customer|kunde kunden kundin|client clients|cliente clientes|cliente clienti|cliente clientes|klant klanten
employee|mitarbeiter angestellter|employé salarié|empleado trabajador|dipendente impiegato|funcionário empregado|medewerker werknemer
boss|chef vorgesetzter|patron|jefe|capo|chefe|baas
friend|freund freundin freunde|ami amie amis|amigo amiga amigos|amico amica amici|amigo amiga amigos|vriend vriendin vrienden
family|familie|famille|familia|famiglia|família|familie gezin
child|kind kinder|enfant|niño hijo|bambino figlio|criança filho|kind kinderen
contact|kontakt kontakte ansprechpartner|contact contacts|contacto contactos|contatto contatti|contato contatos contacto|contact contactpersoon contacten
company|firma unternehmen betrieb|entreprise société|empresa compañía|azienda impresa società|empresa companhia|bedrijf onderneming
organization|organisation|organisation|organización|organizzazione|organização|organisatie
role|rolle|rôle|rol papel|ruolo|papel função|rol
permission|berechtigung erlaubnis recht rechte zugriffsrecht|autorisation permission droit droits|permiso permisos|permesso permessi autorizzazione|permissão permissões|machtiging toestemming rechten
access|zugriff zugang|accès|acceso|accesso|acesso|toegang
account|konto konten|compte comptes|cuenta cuentas|conto account|conta contas|rekening account
password|passwort kennwort|mot_de_passe|contraseña clave|password parola_d'ordine|senha palavra-passe|wachtwoord
name|name namen|nom|nombre|nome|nome|naam
title|titel überschrift|titre|título|titolo|título|titel
description|beschreibung|description|descripción|descrizione|descrição|beschrijving omschrijving
detail|einzelheit detail details|détail détails|detalle detalles|dettaglio dettagli|detalhe detalhes|bijzonderheden details
information|information informationen auskunft angaben infos|information informations renseignement infos|información datos|informazione informazioni|informação informações|informatie gegevens info
comment|kommentar kommentare anmerkung|commentaire commentaires|comentario comentarios|commento commenti|comentário comentários|opmerking commentaar reactie reacties
thread discussion|diskussion gesprächsfaden|fil_de_discussion fil discussion|hilo discusión|discussione filo|discussão tópico fio|discussie draad
conversation|gespräch unterhaltung|conversation|conversación charla|conversazione|conversa|gesprek
message|nachricht nachrichten mitteilung|message messages|mensaje mensajes|messaggio messaggi|mensagem mensagens|bericht berichten
unread|ungelesen ungelesene|non_lu non_lus non_lue non_lues|no_leído no_leídos sin_leer no_leídas|non_letto non_letti non_letta non_lette|não_lido não_lidas não_lidos não_lida|ongelezen
channel|kanal kanäle|canal salon chaîne|canal canales|canale canali|canal canais|kanaal kanalen
mail email|mail mails e-mail postfach email|courriel mail mails e-mail mél|correo correos correo_electrónico|posta e-mail mail posta_elettronica|e-mail correio email|mail mails e-mail e-mailbericht
inbox|posteingang eingang|boîte_de_réception|bandeja_de_entrada buzón|posta_in_arrivo casella|caixa_de_entrada|postvak inbox postvak_in
draft|entwurf entwürfe|brouillon brouillons|borrador borradores|bozza bozze|rascunho rascunhos|concept concepten
attachment|anhang anhänge dateianhang|pièce_jointe pièces_jointes|adjunto adjuntos archivo_adjunto|allegato allegati|anexo anexos|bijlage bijlagen
recipient|empfänger|destinataire|destinatario|destinatario|destinatário|ontvanger
sender|absender|expéditeur|remitente|mittente|remetente|afzender
subject topic|betreff thema themen|objet sujet|asunto tema|oggetto argomento tema|assunto tema|onderwerp
letter|brief briefe|lettre|carta|lettera|carta|brief brieven
notification|benachrichtigung benachrichtigungen hinweis meldung|notification notifications|notificación notificaciones aviso avisos|notifica notifiche avviso|notificação notificações aviso|melding meldingen notificatie
reminder|erinnerung erinnerungen|rappel rappels|recordatorio recordatorios|promemoria|lembrete lembretes|herinnering herinneringen
alarm|wecker alarm|alarme réveil|alarma despertador|allarme sveglia|alarme despertador|wekker alarm
alert warning|warnung alarm|alerte avertissement|alerta advertencia|avviso allerta|alerta aviso|waarschuwing
calendar|kalender|calendrier agenda|calendario agenda|calendario agenda|calendário agenda|kalender agenda
appointment event|termin termine kalendereintrag|rendez-vous rdv|cita citas|appuntamento appuntamenti|compromisso compromissos|afspraak afspraken
meeting|besprechung sitzung treffen meeting meetings|réunion réunions|reunión reuniones|riunione riunioni incontro|reunião reuniões|vergadering bijeenkomst bespreking overleg
event|ereignis veranstaltung veranstaltungen|événement événements évènement|evento eventos|evento eventi|evento eventos|evenement gebeurtenis
invitation|einladung einladungen|invitation invitations|invitación invitaciones|invito inviti|convite convites|uitnodiging uitnodigingen
participant attendee|teilnehmer teilnehmerin|participant participants|participante asistente participantes|partecipante partecipanti|participante participantes|deelnemer deelnemers
organizer|veranstalter organisator|organisateur|organizador|organizzatore|organizador|organisator
free|frei freie freier freien kostenlos|libre libres gratuit|libre libres gratis|libero libera liberi gratis|livre livres grátis|vrij vrije gratis
busy|beschäftigt belegt|occupé|ocupado|occupato|ocupado|bezet druk
available|verfügbar|disponible disponibles|disponible disponibles|disponibile disponibili|disponível disponíveis|beschikbaar
slot|zeitfenster lücke|créneau créneaux|hueco huecos|fascia|horário_livre vaga|tijdslot
deadline due date|frist fristen fälligkeit abgabetermin stichtag|échéance échéances date_limite délai|plazo plazos fecha_límite vencimiento|scadenza scadenze|prazo prazos vencimento|deadline vervaldatum termijn
due|fällig fällige fälligen|dû due|vence vencido|in_scadenza scade|vence|verloopt
overdue|überfällig überfällige|en_retard|atrasado vencido|in_ritardo scaduto|atrasado atrasada|achterstallig te_laat
date|datum|date|fecha|data|data|datum
day|tag tage|jour jours journée|día días|giorno giorni|dia dias|dag dagen
week|woche wochen|semaine semaines|semana semanas|settimana settimane|semana semanas|week weken
month|monat monate|mois|mes meses|mese mesi|mês meses|maand maanden
year|jahr jahre|an année ans années|año años|anno anni|ano anos|jaar jaren
hour|stunde stunden|heure heures|hora horas|ora ore|hora horas|uur uren
minute|minute minuten|minute|minuto minutos|minuto minuti|minuto minutos|minuut minuten
second|sekunde sekunden|seconde|segundo|secondo|segundo|seconde
time|zeit zeiten uhrzeit uhr|temps heure|tiempo hora|tempo ora|tempo hora|tijd
current|aktuell aktuelle aktuellen aktueller derzeitig|actuel actuelle actuels|actual actuales|attuale attuali corrente|atual atuais|huidig huidige actuele
today|heute heutige heutigen|aujourd'hui aujourd|hoy|oggi|hoje|vandaag
tomorrow|morgen|demain|mañana|domani|amanhã|morgen
yesterday|gestern|hier|ayer|ieri|ontem|gisteren
now|jetzt gerade|maintenant|ahora|adesso ora|agora|nu
morning|vormittag früh morgens|matin|mañana|mattina|manhã|ochtend
afternoon|nachmittag|après-midi|tarde|pomeriggio|tarde|middag
evening|abend abends|soir soirée|noche|sera|noite|avond
night|nacht|nuit|noche|notte|noite|nacht
noon|mittag|midi|mediodía|mezzogiorno|meio-dia|middaguur
next|nächste nächster nächsten nächstes kommende kommenden|prochain prochaine prochains suivant|próximo próxima siguiente próximos que_viene|prossimo prossima prossimi|próximo próxima seguinte próximos|volgende komende
last|letzte letzter letzten letztes vergangene|dernier dernière derniers dernières|último última últimos últimas pasado pasada|ultimo ultima ultimi ultime scorso scorsa|último última últimos últimas passado passada|laatste vorige afgelopen
first|erste erster ersten erstes|premier première|primero primera primer|primo prima|primeiro primeira|eerste
previous earlier|vorherige frühere früher vorige|précédent précédente antérieur|anterior anteriores|precedente precedenti|anterior anteriores|vorige eerdere
new|neu neue neuer neuen neues neuem|nouveau nouvelle nouveaux nouvelles nouvel|nuevo nueva nuevos nuevas|nuovo nuova nuovi nuove|novo nova novos novas|nieuw nieuwe
old|alt alte alten alter altes|vieux vieille ancien ancienne anciens|viejo vieja antiguo antigua antiguos|vecchio vecchia vecchi|velho velha antigo antiga antigos|oud oude
latest newest|neueste neuesten neuester|plus_récent plus_récents récent récents|más_reciente más_recientes reciente recientes|più_recente più_recenti recente recenti|mais_recente mais_recentes recente recentes|nieuwste recente
monday|montag|lundi|lunes|lunedì|segunda-feira segunda|maandag
tuesday|dienstag|mardi|martes|martedì|terça-feira terça|dinsdag
wednesday|mittwoch|mercredi|miércoles|mercoledì|quarta-feira quarta|woensdag
thursday|donnerstag|jeudi|jueves|giovedì|quinta-feira quinta|donderdag
friday|freitag|vendredi|viernes|venerdì|sexta-feira sexta|vrijdag
saturday|samstag sonnabend|samedi|sábado|sabato|sábado|zaterdag
sunday|sonntag|dimanche|domingo|domenica|domingo|zondag
weekend|wochenende|week-end|fin_de_semana|fine_settimana weekend|fim_de_semana|weekend
january|januar|janvier|enero|gennaio|janeiro|januari
february|februar|février|febrero|febbraio|fevereiro|februari
march|märz|mars|marzo|marzo|março|maart
april|april|avril|abril|aprile|abril|april
may|mai|mai|mayo|maggio|maio|mei
june|juni|juin|junio|giugno|junho|juni
july|juli|juillet|julio|luglio|julho|juli
august|august|août|agosto|agosto|agosto|augustus
september|september|septembre|septiembre|settembre|setembro|september
october|oktober|octobre|octubre|ottobre|outubro|oktober
november|november|novembre|noviembre|novembre|novembro|november
december|dezember|décembre|diciembre|dicembre|dezembro|december
holiday|feiertag feiertage|jour_férié jours_fériés|festivo día_festivo|festività giorno_festivo|feriado feriados|feestdag
vacation|urlaub ferien|vacances congé congés|vacaciones|vacanza vacanze ferie|férias|vakantie verlof
birthday|geburtstag|anniversaire|cumpleaños|compleanno|aniversário|verjaardag
period|zeitraum|période|período periodo|periodo|período|periode
time zone|zeitzone|fuseau_horaire|zona_horaria huso|fuso_orario|fuso_horário|tijdzone
file|datei dateien akte|fichier fichiers|archivo archivos fichero ficheros|file archivio|arquivo arquivos ficheiro ficheiros|bestand bestanden
folder|ordner verzeichnis mappe|dossier dossiers répertoire|carpeta carpetas directorio|cartella cartelle directory|pasta pastas diretório|map mappen folder
document|dokument dokumente unterlagen schriftstück|document documents|documento documentos|documento documenti|documento documentos|document documenten
page|seite seiten|page pages|página páginas|pagina pagine|página páginas|pagina pagina's
text|text texte|texte|texto|testo|texto|tekst
content|inhalt inhalte|contenu|contenido|contenuto|conteúdo|inhoud
version|version fassung versionen|version versions|versión versiones|versione versioni|versão versões|versie versies
history|verlauf geschichte historie|historique histoire|historial historia|cronologia storico storia|histórico história|geschiedenis
change|änderung änderungen|modification modifications changement changements|cambio cambios modificación|modifica modifiche cambiamento|mudança mudanças alteração alterações|wijziging wijzigingen verandering
difference|unterschied unterschiede|différence différences|diferencia diferencias|differenza differenze|diferença diferenças|verschil verschillen
trash|papierkorb müll|corbeille poubelle|papelera basura|cestino|lixeira lixo|prullenbak
storage space|speicher speicherplatz|espace stockage|almacenamiento espacio|spazio archiviazione|armazenamento espaço|opslag opslagruimte ruimte
path|pfad|chemin|ruta|percorso|caminho|pad
size|größe|taille|tamaño|dimensione dimensioni|tamanho|grootte
large|groß große großen größte größten|grand grande gros|grande grandes|grande grandi|grande grandes|groot grote grootste
small|klein kleine kleinen|petit petite|pequeño pequeña|piccolo piccola|pequeno pequena|klein kleine
picture image|bild bilder foto fotos|image images photo|imagen imágenes foto|immagine immagini foto|imagem imagens foto|afbeelding afbeeldingen foto plaatje
video|video videos film|vidéo vidéos|vídeo vídeos|video filmato|vídeo vídeos|video's film
music|musik|musique|música|musica|música|muziek
song|lied lieder titel|chanson chansons morceau|canción canciones|canzone canzoni brano|canção música canções|lied nummer liedje
artist|künstler|artiste|artista|artista cantante|artista|artiest
album|||álbum||álbum|
playlist|wiedergabeliste|liste_de_lecture|lista_de_reproducción|scaletta|lista_de_reprodução|afspeellijst
volume|lautstärke|volume|volumen|volume|volume|geluidssterkte
movie|film filme|film films|película películas|film pellicola|filme filmes|film films
book|buch bücher|livre livres|libro libros|libro libri|livro livros|boek boeken
article|artikel beitrag|article articles|artículo artículos|articolo articoli|artigo artigos|artikel artikelen
news|nachrichten neuigkeiten|nouvelles actualités|noticias|notizie novità|notícias|nieuws
note|notiz notizen vermerk|note notes|nota notas|nota note appunto appunti|nota notas anotação|notitie notities aantekening
table|tabelle tisch|tableau table|tabla mesa|tabella tavolo|tabela mesa|tabel tafel
row|zeile zeilen|ligne lignes|fila filas|riga righe|linha linhas|rij regel
column|spalte spalten|colonne|columna|colonna|coluna|kolom
cell|zelle|cellule|celda|cella|célula|cel
spreadsheet|tabellenkalkulation tabelle|feuille_de_calcul tableur|hoja_de_cálculo|foglio_di_calcolo|planilha|spreadsheet rekenblad
presentation|präsentation|présentation|presentación|presentazione|apresentação|presentatie
form|formular|formulaire|formulario|modulo|formulário|formulier
template|vorlage vorlagen|modèle|plantilla|modello|modelo|sjabloon
report|bericht berichte auswertung|rapport rapports|informe informes reporte|rapporto resoconto relazione|relatório relatórios|rapport verslag
chart graph|diagramm grafik graph|graphique diagramme graphe|gráfico diagrama grafo|grafico diagramma grafo|gráfico diagrama grafo|grafiek diagram
statistics|statistik statistiken|statistique statistiques|estadística estadísticas|statistica statistiche|estatística estatísticas|statistiek statistieken
number|nummer zahl anzahl zahlen|numéro nombre chiffre|número cantidad|numero|número quantidade|nummer aantal getal
average|durchschnitt durchschnittlich|moyenne|promedio media|media|média|gemiddelde
total|gesamt insgesamt summe|total totale|total|totale|total|totaal
percent|prozent|pour_cent pourcentage|por_ciento porcentaje|percento percentuale|por_cento porcentagem|procent
value|wert werte|valeur valeurs|valor valores|valore valori|valor valores|waarde
data|daten|données|datos|dati|dados|data gegevens
database|datenbank|base_de_données|base_de_datos|database banca_dati|banco_de_dados base_de_dados|databank database
query|abfrage anfrage|requête|consulta|interrogazione query|consulta|zoekopdracht query
search|suche suchen|recherche recherches|búsqueda búsquedas|ricerca ricerche|busca pesquisa pesquisas|zoekopdracht zoekopdrachten
saved|gespeichert gespeicherte gespeicherten|enregistré enregistrée enregistrées enregistrés sauvegardé|guardado guardada guardadas guardados|salvato salvata salvate salvati|salvo salva salvas salvos|opgeslagen bewaarde
deleted|gelöscht gelöschte gelöschten|supprimé supprimée supprimés supprimées|borrado eliminado eliminados borrados eliminada|eliminato eliminati cancellato eliminata|apagado excluído excluídos apagados|verwijderd verwijderde
result|ergebnis ergebnisse|résultat résultats|resultado resultados|risultato risultati|resultado resultados|resultaat resultaten
word|wort wörter|mot mots|palabra palabras|parola parole|palavra palavras|woord woorden
sentence|satz|phrase|frase|frase|frase|zin
language|sprache|langue|idioma lengua|lingua|idioma língua|taal
question|frage fragen|question questions|pregunta preguntas|domanda domande|pergunta perguntas|vraag vragen
idea|idee ideen|idée|idea|idea|ideia|idee
link|link links verknüpfung|lien liens|enlace enlaces vínculo|collegamento link collegamenti|link ligação vínculo|koppeling link koppelingen
website|webseite webseiten|site_web site|sitio_web sitio página_web|sito sito_web|site página_web|website webpagina
address|adresse anschrift|adresse|dirección|indirizzo|endereço|adres
internet network|internet netzwerk netz|internet réseau|internet red|internet rete|internet rede|internet netwerk
server|server|serveur|servidor|server|servidor|server
computer|computer rechner|ordinateur|ordenador computadora|computer|computador|computer
phone|telefon handy telefonnummer|téléphone portable|teléfono móvil celular|telefono cellulare|telefone celular|telefoon mobiel
app|anwendung app|application appli|aplicación app|applicazione app|aplicativo aplicação|applicatie toepassing app
software program|programm|logiciel programme|programa|programma|programa|programma
code|code quelltext quellcode|code|código|codice|código|code broncode
repository|repository|dépôt|repositorio|repository|repositório|repository opslagplaats
branch|zweig|branche|rama|ramo|ramo|tak branch
pull request|pull-request||solicitud_de_extracción|||
function|funktion|fonction|función|funzione|função|functie
class|klasse|classe|clase|classe|classe|klasse
variable|variable|variable|variable|variabile|variável|variabele
library|bibliothek|bibliothèque|biblioteca librería|libreria biblioteca|biblioteca|bibliotheek
package parcel|paket pakete|paquet colis|paquete|pacchetto pacco|pacote encomenda|pakket pakje
test|test tests|test tests essai|prueba pruebas|prova test|teste testes|test testen
log|protokoll protokolle|journal journaux|registro registros|registro log|registro log|logboek
line|linie zeile|ligne|línea|linea|linha|regel lijn
key|schlüssel|clé clef|clave llave|chiave|chave|sleutel
setting|einstellung einstellungen|paramètre paramètres réglage réglages|ajuste ajustes configuración|impostazione impostazioni|configuração configurações definição definições|instelling instellingen
preference|vorliebe präferenz|préférence préférences|preferencia preferencias|preferenza preferenze|preferência preferências|voorkeur voorkeuren
option|option möglichkeit|option|opción|opzione|opção|optie
label|etikett schlagwort kennzeichnung|étiquette étiquettes libellé|etiqueta etiquetas|etichetta etichette|etiqueta etiquetas rótulo|label etiket labels
tag|schlagwort stichwort|mot-clé|etiqueta|tag|marcador|trefwoord
category|kategorie kategorien|catégorie catégories|categoría categorías|categoria categorie|categoria categorias|categorie
group|gruppe gruppen|groupe groupes|grupo grupos|gruppo gruppi|grupo grupos|groep groepen
type kind|art typ sorte|type genre sorte|tipo clase|tipo genere|tipo gênero|soort type
list|liste listen|liste listes|lista listas listado|lista liste elenco|lista listas|lijst lijsten
step|schritt schritte|étape étapes|paso pasos|passo passaggio passi|passo passos etapa|stap stappen
part|teil teile|partie part|parte partes|parte parti|parte partes|deel
place location|ort stelle platz standort|lieu endroit emplacement|lugar sitio ubicación|luogo posto posizione|lugar local localização|plaats plek locatie
city|stadt städte|ville|ciudad|città|cidade|stad
country|land länder|pays|país|paese|país|land
street|straße|rue|calle|via strada|rua|straat
map|karte landkarte stadtplan|carte plan|mapa|mappa cartina|mapa|kaart
route directions|route weg strecke wegbeschreibung|itinéraire trajet route chemin|ruta camino itinerario|percorso strada itinerario|rota caminho trajeto|route weg
distance|entfernung abstand|distance|distancia|distanza|distância|afstand
near|nahe nähe neben in_der_nähe|près proche|cerca cercano|vicino vicini|perto próximo_de|dichtbij vlakbij buurt
weather|wetter|météo temps_qu'il_fait|tiempo_hace clima meteorológico|meteo tempo_fa|clima tempo_faz meteorologia|weer weerbericht
weather forecast|wettervorhersage wetterbericht|prévisions_météo bulletin_météo|pronóstico_del_tiempo|previsioni_del_tempo previsioni_meteo|previsão_do_tempo|weersverwachting
temperature|temperatur|température|temperatura|temperatura|temperatura|temperatuur
rain|regen regnen regnet|pluie pleuvoir pleut|lluvia llover llueve lloverá|pioggia piovere piove pioverà|chuva chover chove|regen regenen regent
snow|schnee schneien schneit|neige neiger|nieve nevar|neve nevicare|neve nevar|sneeuw sneeuwen
wind|wind|vent|viento|vento|vento|wind
sun|sonne|soleil|sol|sole|sol|zon
warm hot|warm heiß|chaud|caliente calor|caldo|quente calor|warm heet
cold|kalt|froid|frío|freddo|frio|koud
air|luft|air|aire|aria|ar|lucht
light|licht lampe|lumière lampe|luz lámpara|luce lampada|luz lâmpada|licht lamp
shop store|laden geschäft|magasin boutique|tienda|negozio|loja|winkel
product|produkt produkte artikel ware|produit produits|producto productos|prodotto prodotti|produto produtos|product producten
price|preis preise|prix|precio precios|prezzo prezzi|preço preços|prijs prijzen
cart|warenkorb einkaufswagen|panier|carrito cesta|carrello|carrinho|winkelwagen winkelmandje
shopping list|einkaufsliste|liste_de_courses|lista_de_la_compra lista_de_compras|lista_della_spesa|lista_de_compras|boodschappenlijst
invoice|rechnung rechnungen|facture factures|factura facturas|fattura fatture|fatura faturas nota_fiscal|factuur facturen rekening
receipt|quittung beleg|reçu|recibo|ricevuta scontrino|recibo|bon kwitantie
payment|zahlung bezahlung|paiement|pago pagos|pagamento pagamenti|pagamento pagamentos|betaling betalingen
money|geld|argent|dinero|denaro soldi|dinheiro|geld
bank|bank|banque|banco|banca|banco|bank
balance|kontostand guthaben saldo|solde|saldo|saldo|saldo|saldo
budget|budget haushalt|budget|presupuesto|budget bilancio|orçamento|begroting budget
expense cost|ausgabe ausgaben kosten spesen|dépense dépenses frais coût|gasto gastos coste costo|spesa spese costo costi|despesa despesas custo gastos|uitgave uitgaven kosten onkosten
income salary|einkommen gehalt|revenu salaire|ingreso salario sueldo|reddito stipendio|renda salário|inkomen salaris
tax|steuer steuern|impôt taxe|impuesto impuestos|tassa imposta tasse|imposto impostos|belasting
currency|währung|devise monnaie|moneda divisa|valuta moneta|moeda|valuta munt
exchange rate|wechselkurs|taux_de_change|tipo_de_cambio|tasso_di_cambio|taxa_de_câmbio|wisselkoers
stock share price|aktie aktien aktienkurs börse kurs|action bourse cours_de_bourse|acción acciones bolsa|azione azioni borsa|ação ações bolsa|aandeel aandelen beurs koers
contract|vertrag verträge|contrat|contrato|contratto|contrato|contract overeenkomst
offer quote|angebot angebote|offre devis|oferta presupuesto|offerta preventivo|oferta orçamento|aanbieding offerte
discount|rabatt|remise réduction|descuento|sconto|desconto|korting
inventory stock|bestand lager lagerbestand|stock inventaire|inventario existencias|magazzino inventario scorte|estoque inventário|voorraad
travel trip|reise reisen|voyage voyages|viaje viajes|viaggio viaggi|viagem viagens|reis reizen
flight|flug flüge|vol vols|vuelo vuelos|volo voli|voo voos|vlucht vluchten
airport|flughafen|aéroport|aeropuerto|aeroporto|aeroporto|luchthaven vliegveld
train|zug züge bahn|train trains|tren trenes|treno treni|trem comboio|trein treinen
station|bahnhof haltestelle|gare station|estación|stazione|estação|station
bus|bus|bus autobus|autobús|autobus|ônibus autocarro|bus
car|auto wagen|voiture|coche carro auto|macchina auto|carro|auto wagen
bicycle|fahrrad rad|vélo|bicicleta|bicicletta|bicicleta|fiets
hotel|hotel unterkunft|hôtel hébergement|hotel alojamiento|albergo alloggio|hotel hospedagem|hotel verblijf
room|zimmer raum|chambre salle|habitación sala cuarto|camera stanza sala|quarto sala|kamer ruimte
restaurant|restaurant|restaurant|restaurante|ristorante|restaurante|restaurant
ticket|fahrkarte ticket eintrittskarte|billet billets|billete boleto entrada|biglietto biglietti|bilhete passagem ingresso|kaartje
traffic|verkehr stau|circulation trafic|tráfico|traffico|trânsito tráfego|verkeer
house home|haus zuhause wohnung|maison appartement|casa piso|casa appartamento|casa apartamento|huis woning
school|schule|école|escuela colegio|scuola|escola|school
university|universität|université|universidad|università|universidade|universiteit
course lesson|kurs unterricht|cours leçon|curso clase|corso lezione|curso aula|cursus les
doctor|arzt ärztin|médecin docteur|médico doctor|medico dottore|médico doutor|arts dokter
health|gesundheit|santé|salud|salute|saúde|gezondheid
medicine|medikament medizin|médicament|medicina medicamento|medicina farmaco|remédio medicamento|medicijn
food|essen lebensmittel|nourriture aliment|comida alimento|cibo|comida alimento|eten voedsel
recipe|rezept rezepte|recette recettes|receta recetas|ricetta ricette|receita receitas|recept recepten
water|wasser|eau|agua|acqua|água|water
game|spiel spiele|jeu jeux|juego juegos partido|gioco giochi partita|jogo jogos|spel wedstrijd
sport|sport|sport|deporte|sport|esporte desporto|sport
job work|arbeit stelle beruf|travail emploi poste|trabajo empleo|lavoro impiego|trabalho emprego|werk baan
worked|gearbeitet|travaillé|trabajado trabajé trabajadas|lavorato|trabalhado trabalhei trabalhou|gewerkt
working hours|arbeitszeit arbeitszeiten arbeitsstunden|heures_de_travail temps_de_travail heures_travaillées|horas_trabajadas horario_laboral|ore_lavorate orario_di_lavoro ore_di_lavoro|horas_trabalhadas horário_de_trabalho|werktijd werkuren gewerkte_uren
timesheet|stundenzettel zeiterfassung|feuille_de_temps feuille_d'heures|hoja_de_horas parte_de_horas|foglio_ore foglio_presenze|folha_de_horas folha_de_ponto|urenstaat urenbriefje urenregistratie
time entry|zeiteintrag zeiteinträge|entrée_de_temps saisie_de_temps|entrada_de_tiempo registro_de_tiempo|registrazione_ore voce_di_tempo|registro_de_tempo|tijdregistratie tijdsregistratie
timer stopwatch|stoppuhr timer zeitmesser|minuteur chronomètre chrono minuterie|temporizador cronómetro|cronometro|temporizador cronômetro|stopwatch timer
office|büro|bureau|oficina|ufficio|escritório|kantoor
department|abteilung|département service|departamento|reparto dipartimento|departamento|afdeling
workspace|arbeitsbereich arbeitsumgebung|espace_de_travail|espacio_de_trabajo|spazio_di_lavoro area_di_lavoro|espaço_de_trabalho área_de_trabalho|werkruimte
guest|gast gäste|invité hôte|invitado huésped|ospite|convidado hóspede|gast
owner|eigentümer besitzer inhaber|propriétaire|propietario dueño|proprietario|proprietário dono|eigenaar
admin|verwalter|administrateur|administrador|amministratore|administrador|beheerder
author|autor verfasser|auteur|autor|autore|autor|auteur schrijver
activity|aktivität aktivitäten|activité activités|actividad actividades|attività|atividade atividades|activiteit activiteiten
contribution|beitrag beiträge|contribution|contribución|contributo contributi|contribuição|bijdrage
progress|fortschritt|avancement progrès|progreso avance|avanzamento progresso|progresso andamento|voortgang
goal|ziel ziele|but objectif|objetivo meta|obiettivo scopo|objetivo meta|doel
success|erfolg|succès réussite|éxito|successo|sucesso|succes
failure|fehlschlag|échec|fracaso|fallimento|fracasso falha|mislukking
quality|qualität|qualité|calidad|qualità|qualidade|kwaliteit
risk|risiko|risque|riesgo|rischio|risco|risico
reason cause|grund ursache|raison cause|razón causa motivo|ragione causa motivo|razão causa motivo|reden oorzaak
example|beispiel|exemple|ejemplo|esempio|exemplo|voorbeeld
rule|regel regeln|règle|regla|regola|regra|regel
law|gesetz recht|loi droit|ley derecho|legge|lei|wet
plan|plan pläne|plan|plan planes|piano|plano|plan
memory|gedächtnis erinnerung|mémoire|memoria|memoria|memória|geheugen
experience|erfahrung|expérience|experiencia|esperienza|experiência|ervaring
episode|episode episoden|épisode épisodes|episodio episodios|episodio episodi|episódio episódios|aflevering episode
pattern|muster|motif motifs schéma modèle|patrón patrones|schema schemi modello modelli|padrão padrões|patroon patronen
similar|ähnlich ähnliche ähnlichen|similaire similaires semblable|similar similares parecido parecidos parecidas|simile simili|semelhante semelhantes parecido similar parecidos|vergelijkbaar vergelijkbare soortgelijke
same|gleich gleiche gleichen selbe|même mêmes|mismo misma mismos|stesso stessa stessi|mesmo mesma mesmos|zelfde dezelfde hetzelfde
different|verschieden unterschiedlich|différent différents|diferente distinto|diverso diversi|diferente|verschillend anders
good|gut gute guten|bon bonne|bueno buena buen|buono buona|bom boa|goed goede
better best|besser beste besten|meilleur mieux|mejor mejores|migliore meglio|melhor melhores|beter beste
bad|schlecht schlimm|mauvais|malo mal|cattivo male|ruim mau|slecht
important|wichtig wichtige|important importante|importante importantes|importante importanti|importante importantes|belangrijk belangrijke
private|privat private|privé privée|privado privada|privato privata|privado privada|privé
public|öffentlich öffentlichen|public publique|público pública|pubblico pubblica|público pública|openbaar publiek
running|laufend laufende läuft|en_cours|en_marcha en_curso|in_corso|em_andamento em_execução|lopend lopende loopt
active|aktiv aktive|actif active|activo activa|attivo attiva|ativo ativa|actief actieve
finished|beendet fertiggestellt|terminé terminée|terminado acabado|finito terminato|terminado acabado|afgelopen beëindigd
empty|leer|vide|vacío|vuoto|vazio|leeg
missing|fehlt fehlend|manquant manque|falta faltante|mancante manca|falta faltando|ontbreekt ontbrekend
broken|kaputt defekt|cassé en_panne|roto averiado|rotto guasto|quebrado|kapot stuk
wrong|falsch|faux mauvais|incorrecto equivocado|sbagliato|errado|verkeerd fout
long|lang lange|long longue longtemps|largo mucho_tiempo|lungo a_lungo|longo muito_tempo|lang
again|wieder erneut nochmal|à_nouveau de_nouveau encore|otra_vez de_nuevo|di_nuovo ancora|de_novo novamente|weer opnieuw
together|zusammen gemeinsam|ensemble|juntos|insieme|juntos|samen
ever always|immer|toujours|siempre|sempre|sempre|altijd
never|nie niemals|jamais|nunca|mai|nunca|nooit
often|oft häufig|souvent|a_menudo|spesso|muitas_vezes frequentemente|vaak
anyone everybody|jemand niemand jedermann|quelqu'un tout_le_monde personne|alguien nadie todo_el_mundo|qualcuno nessuno|alguém ninguém todo_mundo toda_a_gente|iemand niemand iedereen
something thing|sache ding dinge|chose choses|cosa cosas|cosa cose|coisa coisas|ding iets
everything|alles|tout|todo|tutto|tudo|alles
nothing|nichts|rien|nada|niente nulla|nada|niets
permanently for good|endgültig dauerhaft|définitivement|definitivamente permanentemente|definitivamente|definitivamente permanentemente|definitief permanent
more than|mehr_als|plus_de|más_de|più_di|mais_de|meer_dan
one|eins|un|uno|uno|um|één
two|zwei beide beiden|deux|dos|due|dois duas|twee
three|drei|trois|tres|tre|três|drie
four|vier|quatre|cuatro|quattro|quatro|vier
five|fünf|cinq|cinco|cinque|cinco|vijf
six|sechs|six|seis|sei|seis|zes
seven|sieben|sept|siete|sette|sete|zeven
eight|acht|huit|ocho|otto|oito|acht
nine|neun|neuf|nueve|nove|nove|negen
ten|zehn|dix|diez|dieci|dez|tien
half|halb halbe|demi moitié|medio media mitad|mezzo mezza metà|meio meia metade|half helft
hundred|hundert|cent|cien|cento|cem|honderd
color|farbe|couleur|color|colore|cor|kleur
red|rot rote|rouge|rojo roja|rosso rossa|vermelho vermelha|rood rode
green|grün grüne|vert verte|verde|verde|verde|groen groene
blue|blau blaue|bleu bleue|azul|blu|azul|blauw blauwe
black|schwarz|noir|negro|nero|preto|zwart
white|weiß|blanc|blanco|bianco|branco|wit
sub-issue subtask|unteraufgabe teilaufgabe|sous-tâche|subtarea|sottoattività|subtarefa|subtaak
parent|übergeordnet eltern|parent|padre|genitore|pai|bovenliggend
hours minutes duration|dauer|durée|duración|durata|duração|duur
quiet hours|ruhezeit ruhezeiten|heures_calmes|horas_de_silencio|ore_di_silenzio|horas_de_silêncio|stille_uren
overview summary|übersicht überblick|aperçu vue_d'ensemble|resumen vista_general|panoramica riepilogo|visão_geral resumo|overzicht
dashboard|übersichtsseite|tableau_de_bord|panel|cruscotto|painel|dashboard
backup|sicherung sicherungskopie|sauvegarde|copia_de_seguridad|copia_di_sicurezza|cópia_de_segurança|reservekopie
checksum|prüfsumme|somme_de_contrôle|suma_de_verificación|somma_di_controllo|soma_de_verificação|controlegetal
outline headings|gliederung überschriften|plan_du_document titres|esquema títulos|struttura titoli|estrutura títulos|indeling koppen
reaction|reaktion|réaction|reacción|reazione|reação|reactie
emoji thumbs up|daumen_hoch|pouce|pulgar|pollice|joinha polegar|duim
position job title|position|poste|puesto cargo|posizione|cargo|functie
interview|vorstellungsgespräch|entretien|entrevista|colloquio|entrevista|sollicitatiegesprek
application|bewerbung antrag|candidature demande|solicitud candidatura|domanda candidatura|candidatura solicitação|aanvraag sollicitatie
device|gerät geräte|appareil|dispositivo aparato|dispositivo|dispositivo aparelho|apparaat
screen|bildschirm|écran|pantalla|schermo|tela ecrã|scherm
screenshot|bildschirmfoto|capture_d'écran|captura_de_pantalla|schermata|captura_de_tela|schermafbeelding
button|knopf schaltfläche|bouton|botón|pulsante bottone|botão|knop
window|fenster|fenêtre|ventana|finestra|janela|venster raam
browser|browser|navigateur|navegador|browser|navegador|browser
container|container|conteneur|contenedor|contenitore|contêiner|container
cluster||grappe|clúster|||
environment|umgebung|environnement|entorno|ambiente|ambiente|omgeving
production|produktion|production|producción|produzione|produção|productie
release|veröffentlichung freigabe|publication|lanzamiento|rilascio|lançamento|uitgave
metric|kennzahl kennzahlen|indicateur métrique|métrica métricas|metrica metriche|métrica métricas|meetwaarde
trend|tendenz|tendance tendances|tendencia|tendenza|tendência|trend
sales revenue|umsatz|chiffre_d'affaires ventes|ingresos ventas|fatturato vendite|receita vendas|omzet
supplier|lieferant|fournisseur|proveedor|fornitore|fornecedor|leverancier
warehouse|lager|entrepôt|almacén|magazzino|armazém|magazijn
campaign|kampagne|campagne|campaña|campagna|campanha|campagne
marketing advertising|werbung|publicité|publicidad|pubblicità|publicidade|reclame
lead|leiter leitung|responsable chef_de_projet|líder jefe_de_proyecto|responsabile|líder|leider
most|meisten meiste am_meisten|le_plus la_plupart|mayoría|maggior_parte di_più|maioria o_mais|meeste
least|wenigsten|le_moins|menos|meno|menos|minst
moment|moment augenblick|moment instant|momento|momento|momento|moment ogenblik
address book|adressbuch|carnet_d'adresses|libreta_de_direcciones|rubrica|agenda_de_contatos|adresboek
in progress|in_arbeit in_bearbeitung|en_cours|en_curso en_progreso|in_corso|em_andamento|in_uitvoering mee_bezig
on track|auf_kurs im_plan|dans_les_temps|va_bien al_día|in_linea|no_prazo|op_schema
read only|schreibgeschützt|lecture_seule|solo_lectura|sola_lettura|somente_leitura|alleen-lezen
phone number|telefonnummer handynummer rufnummer|numéro_de_téléphone|número_de_teléfono|numero_di_telefono|número_de_telefone|telefoonnummer
email address|mailadresse e-mail-adresse|adresse_mail adresse_e-mail|dirección_de_correo|indirizzo_e-mail indirizzo_email|endereço_de_e-mail|e-mailadres mailadres
post entry|beitrag eintrag einträge beiträge|entrée article|entrada publicación|voce articolo|entrada postagem publicação|bericht vermelding
sub page|unterseite|sous-page|subpágina|sottopagina|subpágina|subpagina
everyone|jeder alle_leute|tout_le_monde chacun|todo_el_mundo todos|tutti|todo_mundo todos|iedereen
whole|ganz ganze ganzen|entier entière|entero completa completo|intero intera|inteiro completa completo|hele geheel
own|eigen eigene eigenen|propre|propio propia|proprio propria|próprio própria|eigen
open question|offene_frage|question_ouverte|pregunta_abierta|domanda_aperta|pergunta_aberta|open_vraag
yes|ja|oui|sí|sì|sim|ja
no|nein|non|no|no|não|nee
current time|uhrzeit wie_spät|quelle_heure|qué_hora|che_ora che_ore|que_horas|hoe_laat
this week|diese_woche dieser_woche|cette_semaine|esta_semana|questa_settimana|esta_semana essa_semana|deze_week
next week|nächste_woche nächster_woche kommende_woche|semaine_prochaine|próxima_semana semana_que_viene|prossima_settimana settimana_prossima|próxima_semana semana_que_vem|volgende_week
last week|letzte_woche letzter_woche|semaine_dernière|semana_pasada última_semana|settimana_scorsa scorsa_settimana|semana_passada última_semana|vorige_week afgelopen_week
last month|letzter_monat letzten_monat|mois_dernier|mes_pasado último_mes|mese_scorso scorso_mese|mês_passado último_mês|vorige_maand afgelopen_maand
ago|vor_einiger_zeit|il_y_a|hace|fa|atrás|geleden
later|später|plus_tard|más_tarde luego|più_tardi dopo|mais_tarde|later
soon|bald|bientôt|pronto|presto|em_breve logo|binnenkort
early|früh frühzeitig|tôt|temprano|presto|cedo|vroeg
late|spät verspätet|tard|tarde|tardi|tarde|laat
fast|schnell|rapide vite|rápido|veloce rapido|rápido|snel
slow|langsam|lent|lento|lento|lento|langzaam traag
high|hoch hohe hoher|haut haute élevé|alto alta|alto alta|alto alta|hoog hoge
low|niedrig niedrige|bas basse faible|bajo baja|basso bassa|baixo baixa|laag lage
many|viele vielen|beaucoup nombreux|muchos muchas|molti molte|muitos muitas|veel vele
few|wenige wenig|peu|pocos pocas poco|pochi poche poco|poucos poucas pouco|weinig
top above|oben|haut en_haut|arriba|sopra in_alto|acima em_cima|bovenaan boven
below|unten|en_bas|abajo|sotto in_basso|abaixo embaixo|onderaan onder
back|zurück|retour en_arrière|atrás de_vuelta|indietro|de_volta atrás|terug
away out|weg raus hinaus|dehors|fuera|via fuori|fora|weg
night time|nachts|la_nuit|por_la_noche|di_notte|à_noite|nachts 's_nachts
weekday|wochentag werktag|jour_ouvrable|día_laborable|giorno_feriale|dia_útil|werkdag
recurring|wiederkehrend regelmäßig|récurrent régulier|recurrente periódico|ricorrente periodico|recorrente periódico|terugkerend herhalend
meeting minutes|protokoll besprechungsprotokoll|compte-rendu compte_rendu|acta|verbale|ata|notulen
reviewer|prüfer|relecteur|revisor|revisore|revisor|beoordelaar
backlog|rückstand auftragsbestand|carnet|pendientes|arretrato|pendências|achterstand
customer relationship|kundenbeziehung|relation_client|relación_con_clientes|relazione_clienti|relacionamento_com_clientes|klantrelatie
shared|geteilt gemeinsame|partagé partagée|compartido compartida|condiviso condivisa|compartilhado compartilhada|gedeeld gedeelde
archived|archiviert archivierte archivierten|archivé archivée archivés|archivado archivada archivados|archiviato archiviata archiviati|arquivado arquivada arquivados|gearchiveerd gearchiveerde
closed|geschlossene geschlossenen|fermée fermés fermées|cerrada cerrados cerradas|chiusa chiusi chiuse|fechada fechados fechadas|gesloten
completed|abgeschlossene abgeschlossenen erledigte erledigten|terminée terminés terminées achevé|terminada completados completadas terminadas|completata completati completate conclusa|concluída concluídos concluídas|voltooid voltooide afgeronde
linked|verknüpft verknüpfte verbunden|lié liée liés|vinculado vinculada enlazado|collegato collegata collegati|vinculado vinculada ligado|gekoppeld gekoppelde
assigned|zugewiesen zugewiesene zugeteilt|assigné assignée attribué|asignado asignada asignadas|assegnato assegnata assegnate|atribuído atribuída atribuídas|toegewezen
sent|gesendet geschickt|envoyé envoyée|enviado enviada|inviato inviata|enviado enviada|verzonden gestuurd
uploaded|hochgeladen hochgeladene|téléversé|subido subida|caricato caricata|carregado enviado|geüpload
logged booked|gebucht gebuchte erfasst erfasste|saisi saisie|registrado registrada|registrato registrata|registrado registrada|geregistreerd geboekte
scheduled|geplant geplante|prévu prévue planifié|programado programada previsto|programmato programmata previsto|agendado agendada previsto|gepland geplande
created|erstellt erstellte angelegt|créé créée créés|creado creada creados|creato creata creati|criado criada criados|aangemaakte gemaakt
changed|geändert geänderte verändert|changé modifié modifiée|cambiado modificado cambió|cambiato modificato modificata|mudado alterado mudou|gewijzigd gewijzigde veranderd
read|gelesen gelesene|lu lue lus lues|leído leída leídas leídos|letto letta letti lette|lido lida lidas lidos|gelezen
= noun|ru|pl|zh|ja
issue|проблема проблемы задача задачу задачи задач заявка тикет тикеты|zgłoszenie zgłoszenia zgłoszeń problem problemy zadanie|问题 工单 事项 议题|課題 問題 チケット イシュー
task|задача задание задачи задачу|zadanie zadania zadań|任务|タスク 作業
bug error|ошибка ошибку ошибки баг|błąd błędy błędu|错误 缺陷 漏洞|バグ エラー 不具合
project|проект проекта проекты|projekt projekty projektu|项目|プロジェクト
milestone|веха вехи веху этап|kamień_milowy kamienie_milowe etap|里程碑|マイルストーン
status|статус состояние|status stan|状态|ステータス 状態
priority|приоритет|priorytet|优先级|優先度
urgent|срочный срочно срочные|pilne pilny pilnie|紧急|緊急 急ぎ
assignee responsible|исполнитель ответственный|odpowiedzialny przypisany|负责人 经办人|担当者
member|участник участника участники участников член|członek członka członkowie członków|成员|メンバー
team|команда|zespół|团队 小组|チーム
user|пользователь пользователи|użytkownik użytkownicy|用户|ユーザー 利用者
person people|человек люди людей|osoba ludzie osób|人 人员|人 人々
colleague|коллега коллеги|kolega koleżanka koledzy|同事|同僚
customer|клиент клиента клиенты|klient klienta klienci|客户 顾客|顧客 お客様 クライアント
contact|контакт контакты контактов|kontakt kontakty kontaktów|联系人|連絡先 コンタクト
company|компания фирма|firma spółka|公司 企业|会社 企業
role|роль|rola rolę|角色|役割 ロール 権限
permission|разрешение права доступ|uprawnienia pozwolenie|权限|権限 許可
account|счёт аккаунт учётная|konto|账户 账号|アカウント 口座
password|пароль|hasło|密码|パスワード
name|имя название|nazwa imię nazwę|名称 名字|名前 名称
title|заголовок название|tytuł|标题|タイトル 題名
description|описание|opis|描述|説明
detail|подробности детали|szczegóły|详情 详细信息 细节|詳細
information|информация сведения|informacje informacja|信息 资料|情報
thread discussion|обсуждение ветка тред|wątek dyskusja|讨论 话题 帖子|スレッド 議論
message|сообщение сообщения сообщений|wiadomość wiadomości|消息 信息 短信|メッセージ
unread|непрочитанные непрочитанных непрочитанное|nieprzeczytane nieprzeczytanych|未读|未読
read mark|прочитанным прочитанными прочитанное|przeczytane|已读|既読
channel|канал канала каналы|kanał kanału kanały|频道|チャンネル
mail email|почта письмо письма почту|mail poczta e-mail mejl maila|邮件 电子邮件 邮箱|メール 電子メール
inbox|входящие|skrzynka odbiorcza|收件箱|受信箱 受信トレイ
draft|черновик|szkic wersja_robocza|草稿|下書き
attachment|вложение вложения вложений|załącznik załączniki załącznika|附件|添付ファイル
notification|уведомление уведомления уведомлений|powiadomienie powiadomienia powiadomień|通知 提醒|通知
reminder|напоминание|przypomnienie|提醒|リマインダー
calendar|календарь календаре|kalendarz kalendarzu|日历 日程|カレンダー
appointment event|встреча|termin wizyta|约会 日程|予定 アポイント
meeting|встреча встречу совещание собрание встречи|spotkanie spotkania zebranie|会议 开会|会議 ミーティング 打ち合わせ
event|событие события мероприятие|wydarzenie wydarzenia|活动 事件|イベント
invitation|приглашение приглашения|zaproszenie zaproszenia|邀请|招待
participant attendee|участник участники|uczestnik uczestnicy|参与者 与会者 参加者|参加者
free|свободный свободно свободное свободны|wolny wolne wolna wolnych|空闲 空 有空 免费|空き 空いている 空いて 無料
busy|занят занято|zajęty|忙|忙しい
deadline due date|срок сроки дедлайн|termin terminy|截止日期 期限 截止|締め切り 期限 締切
overdue|просроченные просрочен просроченных|zaległe przeterminowane|逾期 过期|期限切れ 遅れている
date|дата|data|日期|日付
day|день дня дней дни|dzień dni dnia|天 日|日
week|неделя неделю недели неделе|tydzień tygodnia tygodniu|周 星期 一周|週 週間
month|месяц месяца|miesiąc miesiąca|月 个月|月
year|год года лет|rok roku lat|年|年
hour|час часа часов|godzina godzin godziny|小时|時間
minute|минута минут|minuta minut|分钟|分
time|время времени|czas czasu godzina|时间|時間 時刻
today|сегодня|dzisiaj dziś|今天|今日
tomorrow|завтра|jutro|明天|明日
yesterday|вчера|wczoraj|昨天|昨日
now current|сейчас текущий|teraz obecny aktualny|现在 当前|今 現在
next|следующий следующей следующую следующая|następny następna przyszły przyszłym|下 下个 下一个 下周|次 次の 来週
last|последний последние последних прошлый прошлой прошлую|ostatni ostatnie ostatnich zeszły zeszłym|上 上个 最后 最近 上周|最後 前回 先週 最近
new|новый новая новое новую новые нового|nowy nowa nowe nową nowego|新 新的|新しい 新規
old|старый старые старых|stary stare starych|旧 老|古い
latest|последняя свежие|najnowszy najnowsze|最新|最新
monday|понедельник|poniedziałek|星期一 周一|月曜日 月曜
tuesday|вторник|wtorek|星期二 周二|火曜日
wednesday|среда среду|środa środę|星期三 周三|水曜日
thursday|четверг|czwartek|星期四 周四|木曜日
friday|пятница пятницу|piątek|星期五 周五|金曜日 金曜
weekend|выходные|weekend|周末|週末
file|файл файла файлы|plik pliku pliki plików|文件|ファイル
folder|папка папку папке|folder katalog folderze|文件夹 目录|フォルダ フォルダー
document|документ документа документы документов|dokument dokumentu dokumenty|文档 文件|文書 ドキュメント 書類
page|страница страницу|strona stronę|页面 页|ページ
text|текст|tekst|文本 文字|テキスト 本文
content|содержимое содержание|zawartość treść|内容|内容 中身
version|версия версии версию|wersja wersje wersji wersję|版本|バージョン 版
history|история историю|historia historię|历史|履歴 歴史
difference|разница различия отличия|różnica różnice|区别 差异 不同|違い 差分
trash|корзина корзину корзины корзине|kosz kosza koszu|回收站 垃圾箱 垃圾|ゴミ箱 ごみ箱
storage space|хранилище место|miejsce przestrzeń pamięć|存储空间 空间 存储|容量 ストレージ 空き容量
picture image|картинка изображение фото|obraz zdjęcie obrazek|图片 照片 图像|画像 写真
video|видео|wideo film|视频|動画 ビデオ
music|музыка музыку|muzyka muzykę|音乐|音楽
song|песня песню|piosenka piosenkę|歌 歌曲|曲 歌
movie|фильм|film|电影|映画
book|книга книгу|książka książkę|书|本
news|новости|wiadomości nowości|新闻|ニュース
note|заметка заметку|notatka notatkę|笔记 备注|メモ ノート
table|таблица таблицу|tabela tabelę|表 表格|表 テーブル
report|отчёт отчет|raport sprawozdanie|报告 报表|レポート 報告書
chart graph|график диаграмма граф|wykres diagram graf|图表 图|グラフ 図
statistics|статистика|statystyki statystyka|统计|統計
number|номер число количество|numer liczba ilość|号码 数字 数量|番号 数
data|данные|dane|数据|データ
database|база_данных базу_данных|baza_danych bazę_danych bazy_danych|数据库|データベース
query|запрос|zapytanie|查询|クエリ
result|результат результаты|wynik wyniki|结果|結果
word|слово слова|słowo słowa|词 单词|単語 言葉
question|вопрос|pytanie|问题|質問
link|ссылка связь связи|link powiązanie powiązania łącze|链接|リンク
website|сайт|strona_internetowa witryna|网站|ウェブサイト サイト
address|адрес|adres|地址|住所 アドレス
server|сервер|serwer|服务器|サーバー
phone|телефон|telefon|电话 手机|電話
code|код|kod|代码|コード
repository|репозиторий|repozytorium|仓库 代码库|リポジトリ
branch|ветка|gałąź|分支|ブランチ
setting|настройка настройки|ustawienie ustawienia|设置|設定
label|метка метку ярлык метки|etykieta etykietę etykiety|标签|ラベル
tag|тег теги|tag tagi|标签|タグ
category|категория|kategoria|类别 分类|カテゴリ
group|группа|grupa|组|グループ
step|шаг шаги|krok kroki|步骤|ステップ 手順
place location|место|miejsce|地点 地方 位置|場所
city|город|miasto|城市|都市 街
country|страна|kraj|国家|国
map|карта карту|mapa mapę|地图|地図 マップ
route directions|маршрут|trasa trasę|路线|ルート 道順
distance|расстояние|odległość|距离|距離
near|рядом близко|blisko niedaleko|附近|近く
weather|погода погоду|pogoda pogodę|天气|天気
weather forecast|прогноз_погоды|prognoza_pogody|天气预报|天気予報
temperature|температура|temperatura|温度 气温|気温 温度
rain|дождь|deszcz padać|雨 下雨|雨
price|цена цену|cena cenę|价格|価格 値段
product|товар продукт|produkt towar|产品 商品|商品 製品
shop|магазин|sklep|商店|店
invoice|счёт-фактура счёт|faktura fakturę|发票|請求書
payment|платёж оплата|płatność|付款 支付|支払い
money|деньги|pieniądze|钱|お金
currency|валюта|waluta|货币|通貨
flight|рейс полёт|lot|航班|フライト 航空便
train|поезд|pociąg|火车|電車 列車
hotel|гостиница отель|hotel|酒店|ホテル
restaurant|ресторан|restauracja|餐厅 饭店|レストラン
job work|работа работы|praca pracy|工作|仕事
worked|работал проработал отработано|pracował pracowałem przepracowane przepracował|工作了|働いた 作業した
working hours|рабочее_время отработанные_часы|godziny_pracy przepracowane_godziny czas_pracy|工时|勤務時間 作業時間 工数
timesheet|табель|karta_czasu_pracy|工时表|勤務表 タイムシート
time entry|запись_времени|wpis_czasu|工时记录 时间记录|作業記録 時間記録
timer|таймер|minutnik stoper timer|计时器 计时|タイマー
workspace|рабочее_пространство|obszar_roboczy przestrzeń_robocza|工作区 工作空间|ワークスペース
admin|администратор админ|administrator|管理员|管理者
guest|гость|gość|访客|ゲスト
owner|владелец|właściciel|所有者|所有者 オーナー
activity|активность деятельность|aktywność|活动 动态|活動 アクティビティ
progress|прогресс ход|postęp|进度 进展|進捗
goal|цель|cel|目标|目標
health|здоровье состояние|zdrowie kondycja|健康|健康 健全性
quality|качество|jakość|质量|品質
risk|риск|ryzyko|风险|リスク
memory|память|pamięć|记忆 内存|記憶 メモリ
episode|эпизод эпизода эпизоды эпизодов|epizod epizodu epizody odcinek|片段 情节 剧集 回合|エピソード
pattern|шаблон паттерн закономерность закономерности паттерны|wzorzec wzorce wzorców|模式|パターン
similar|похожий похожие похожих|podobny podobne podobnych|相似 类似|似た 類似 似ている
same|одинаковые тот_же|ten_sam taki_sam|相同 一样|同じ
different|разные|różny|不同|異なる
important|важный|ważny|重要|重要
private|личный приватный|prywatny|私人 私有|プライベート 非公開
public|публичный|publiczny|公开 公共|公開
running|запущенный|działający bieżący uruchomiony|正在运行 进行中|実行中 動いている 進行中
deleted|удалённые удаленные удалённых|usunięte usuniętych|已删除|削除された 削除済み
two|два две двух|dwa dwie dwóch|两 两个|二つ 2つ
three|три|trzy|三|三つ
permanently for good|навсегда окончательно|trwale na_zawsze|永久 彻底|完全に 永久に
again|снова опять|znowu ponownie|再 重新|再び もう一度
together|вместе|razem|一起|一緒に
everybody|всем все|wszystkim wszyscy|大家 所有人|みんな 全員
parent|родитель|rodzic|父|親
duration|длительность|czas_trwania|持续时间|期間 所要時間
quiet hours|тихие_часы|godziny_ciszy|免打扰时间 免打扰|おやすみ時間 通知オフ時間
reaction|реакция реакцию|reakcja reakcję|表情 反应|リアクション
change log|журнал|dziennik|日志|ログ
version compare|сравнение_версий|porównanie_wersji|版本对比|バージョン比較
success|успех|sukces|成功|成功
failure|неудача|porażka|失败|失敗
period|период|okres|期间|期間
size|размер|rozmiar|大小|サイズ
large|большой большие|duży duże największe|大|大きい
contribution|вклад|wkład|贡献|貢献
key|ключ|klucz|密钥|キー 鍵
birthday|день_рождения|urodziny|生日|誕生日
holiday vacation|отпуск праздник|urlop święto wakacje|假期 节日|休暇 休日 祝日
language|язык|język|语言|言語
student|студент|student|学生|学生
doctor|врач|lekarz|医生|医者
recipe|рецепт|przepis|食谱 菜谱|レシピ
moment|момент|moment chwila|时候|瞬間
this week|на_этой_неделе эту_неделю|w_tym_tygodniu ten_tydzień|本周 这周 这个星期|今週
next week|на_следующей_неделе следующую_неделю|w_przyszłym_tygodniu przyszły_tydzień|下周|来週
last week|на_прошлой_неделе прошлую_неделю|w_zeszłym_tygodniu zeszły_tydzień|上周|先週
last month|в_прошлом_месяце прошлый_месяц|w_zeszłym_miesiącu|上个月|先月
this month|в_этом_месяце|w_tym_miesiącu|本月 这个月|今月
current time|который_час|która_godzina|几点了|何時
yes|да|tak|是的|はい
no|нет|nie|不是|いいえ
later|позже|później|稍后 以后|後で あとで
soon|скоро|wkrótce|很快|まもなく
many|много|dużo wiele|很多 许多|たくさん 多く
few|мало|mało|很少|少し
back|назад|z_powrotem|回来 回|戻す
archived|архивный архивные|zarchiwizowane zarchiwizowany|已归档|アーカイブ済み
completed|завершённые завершённый|ukończone zakończone|已完成 完成的|完了した 完了済み
linked|связанные|powiązane połączone|相关 关联的|関連
assigned|назначенные назначена|przypisane|已分配|割り当てられた
sent|отправленные|wysłane|已发送|送信済み
created|созданные|utworzone|创建的|作成された
changed|изменилось изменён|zmieniło zmieniony|变化 改动|変わった
phone number|номер_телефона|numer_telefonu|电话号码 手机号|電話番号
address book|адресная_книга|książka_adresowa|通讯录|アドレス帳
everyone|каждому|każdemu|每个人|皆
contract|договор контракт|umowa umowę|合同|契約 契約書
night|ночь ночью|noc nocą w_nocy|晚上 夜里|夜 夜間
morning|утро утром|rano poranek|早上 上午|朝 午前
afternoon|днём|popołudnie po_południu|下午|午後
evening|вечер вечером|wieczór wieczorem|晚上|夕方
saturday|суббота субботу|sobota sobotę|星期六 周六|土曜日
sunday|воскресенье|niedziela niedzielę|星期日 周日 星期天|日曜日
email address|адрес_почты|adres_e-mail|邮箱地址|メールアドレス
screen|экран|ekran|屏幕|画面
screenshot|скриншот снимок_экрана|zrzut_ekranu|截图 截屏|スクリーンショット スクショ
image size|размер_изображения|rozmiar_obrazu|图片大小|画像サイズ
row|строка строки|wiersz|行|行
column|столбец|kolumna|列|列
sheet spreadsheet|лист таблица|arkusz|电子表格 表单|シート スプレッドシート
form|форма|formularz|表单|フォーム
template|шаблон|szablon|模板|テンプレート
button|кнопка кнопку|przycisk|按钮|ボタン
login|вход логин|logowanie|登录|ログイン
log in|войти войди|zaloguj_się|登录|ログインして
log out|выйти|wyloguj|退出登录|ログアウト
function|функция|funkcja|函数 功能|関数 機能
test|тест тесты|test testy|测试|テスト
package|пакет посылка|pakiet paczka|包 包裹|パッケージ 荷物
computer|компьютер|komputer|电脑 计算机|パソコン コンピュータ
network|сеть|sieć|网络|ネットワーク
environment|среда_разработки окружение|środowisko|环境|環境
container|контейнер|kontener|容器|コンテナ
transaction|транзакция|transakcja|事务 交易|トランザクション 取引
stock share price|акция акции|akcje giełda|股票 股价|株価 株
exchange rate|курс_валют курс|kurs_walut|汇率|為替レート 為替
budget|бюджет|budżet|预算|予算
expense cost|расходы затраты|wydatki koszty koszt|费用 支出 成本|費用 経費
salary income|зарплата доход|pensja wynagrodzenie|工资 收入|給料 収入
tax|налог|podatek|税|税金
inventory stock|запас склад|magazyn zapasy|库存|在庫
discount|скидка|rabat zniżka|折扣|割引
supplier|поставщик|dostawca|供应商|仕入先
employee|сотрудник сотрудники|pracownik pracownicy|员工|社員 従業員
department|отдел|dział|部门|部署
friend|друг|przyjaciel|朋友|友達
family|семья|rodzina|家庭 家人|家族
game|игра|gra|游戏|ゲーム
food|еда|jedzenie|食物 食品|食べ物 食事
airport|аэропорт|lotnisko|机场|空港
station|станция вокзал|dworzec stacja|车站|駅
car|машина автомобиль|samochód auto|车 汽车|車
room|комната|pokój|房间|部屋
house home|дом|dom|家 房子|家
street|улица|ulica|街道 街|通り
traffic|пробки движение|ruch_drogowy korki|交通|交通 渋滞
snow|снег|śnieg|雪|雪
wind|ветер|wiatr|风|風
"""
