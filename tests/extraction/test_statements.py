"""What plain statements teach, topic by topic."""

import pytest

FOOD = [
    ("I am a vegan.", ["diet||vegan"]),
    ("Im vegan btw", ["diet||vegan"]),
    ("I’ve been vegetarian since 2012.", ["diet||vegetarian"]),
    ("we keep kosher at home", ["diet||kosher"]),
    ("I follow a strict gluten-free diet.", ["diet||gluten-free"]),
    ("I went plant-based last year.", ["diet||plant-based"]),
    ("Just so you know, I'm mostly pescatarian.", ["diet||mostly pescatarian"]),
    ("I eat halal only.", ["diet||halal"]),
    ("I'm on a keto diet at the moment.", ["diet||keto"]),
    ("Since I'm vegan, what can I order at a steakhouse?", ["diet||vegan"]),
    ("I'm vegan, what should I cook tonight?", ["diet||vegan"]),
    ("Could you skip the honey, because I'm vegan?", ["diet||vegan"]),
    ("I'm no longer vegan.", ["-diet||vegan"]),
    ("I stopped being vegetarian.", ["-diet||vegetarian"]),
    ("I am not a vegan any longer", ["-diet||vegan"]),
    ("I gave up being vegan.", ["-diet||vegan"]),
    ("I eat meat again.", ["diet||eats meat", "-preference/likes|meat|avoid"]),
    ("I've gone back to eating chicken.", ["diet||eats chicken", "-preference/likes|chicken|avoid"]),
    ("These days I'm eating fish again.", ["diet||eats fish"]),
    ("I don't eat meat.", ["preference/likes|meat|avoid", "-diet||eats meat"]),
    ("I never eat red meat.", ["preference/likes|red meat|avoid", "-diet||eats red meat"]),
    (
        "I don't eat pork or shellfish.",
        [
            "preference/likes|pork|avoid",
            "-diet||eats pork",
            "preference/likes|shellfish|avoid",
            "-diet||eats shellfish",
        ],
    ),
    ("I don't drink alcohol.", ["preference/likes|alcohol|avoid"]),
    ("I avoid gluten.", ["preference/likes|gluten|avoid"]),
    ("I'm severely allergic to bee stings.", ["diet/allergy|bee sting|allergic"]),
    (
        "I'm allergic to peanuts, shellfish and soy.",
        ["diet/allergy|peanut|allergic", "diet/allergy|shellfish|allergic", "diet/allergy|soy|allergic"],
    ),
    ("i have a nut allergy", ["diet/allergy|nut|allergic"]),
    ("I've got a severe allergy to penicillin.", ["diet/allergy|penicillin|allergic"]),
    ("I'm lactose intolerant.", ["diet/allergy|lactose|intolerant"]),
    ("I have celiac disease.", ["diet/allergy|gluten|intolerant"]),
    ("I'm coeliac.", ["diet/allergy|gluten|intolerant"]),
    ("I'm no longer allergic to cats.", ["diet/allergy|cat|none"]),
    ("I have no food allergies.", ["diet/allergy|any|none"]),
]

SEAT = [
    ("I prefer a window seat.", ["travel/seat||window"]),
    ("I always book the aisle when I fly.", ["travel/seat||aisle"]),
    ("I'd rather have the aisle, thanks.", ["travel/seat||aisle"]),
    ("Aisle seat for me, please.", ["travel/seat||aisle"]),
    ("My preferred seat is the window.", ["travel/seat||window"]),
    ("I used to like the aisle but now I prefer the window.", ["travel/seat||window"]),
]

IDENTITY = [
    ("My name is Priya Raman.", ["identity/name||Priya", "general|full name|Priya Raman"]),
    ("my name is tom", ["identity/name||Tom"]),
    ("Hi, I'm Marisol.", ["identity/name||Marisol"]),
    ("You can call me Beth instead of Elizabeth.", ["identity/name||Beth"]),
    ("I go by Sam.", ["identity/name||Sam"]),
    ("Call me O'Brien.", ["identity/name||O'Brien"]),
    ("My name is Conor O’Brien.", ["identity/name||Conor", "general|full name|Conor O'Brien"]),
    ("Hi, I'm D'Angelo.", ["identity/name||D'Angelo"]),
    ("Everyone calls me Kit.", ["identity/name||Kit"]),
    ("call me “Jo”", ["identity/name||Jo"]),
    ("My surname is Ó Briain.", ["general|surname|Ó Briain"]),
    ("My last name is Fernández-Castro.", ["general|last name|Fernández-Castro"]),
    ("My birthday is on 3 May.", ["general|birthday|3 May"]),
    ("I'm 34 years old.", ["general|age|34"]),
    ("Please answer me in French.", ["identity/language||French"]),
    ("From now on reply in German, please.", ["identity/language||German"]),
    ("I prefer answers in British English.", ["identity/language||British English"]),
    ("I speak Polish and Czech.", ["general|speaks polish|Polish", "general|speaks czech|Czech"]),
    ("My mother tongue is Tamil.", ["general|mother tongue|Tamil"]),
    ("I'm Norwegian.", ["general|nationality|Norwegian"]),
    ("I'm originally from Cork.", ["general|origin|Cork"]),
    ("I'm left-handed.", ["general|handedness|left-handed"]),
]

HOME = [
    ("I live in Lisbon.", ["home/location||Lisbon"]),
    ("i live in new york now", ["home/location||New York"]),
    ("I live in Portland, Oregon, with two flatmates.", ["home/location||Portland, Oregon"]),
    ("We've just relocated to the Netherlands.", ["home/location||the Netherlands"]),
    ("I moved to Oslo last spring.", ["home/location||Oslo"]),
    ("I'm based in São Paulo.", ["home/location||São Paulo"]),
    ("I moved from Turin to Naples for work.", ["home/location||Naples"]),
    ("I live and work in Utrecht.", ["home/location||Utrecht"]),
    ("I live at 12 Chapel Lane.", ["home/location||12 Chapel Lane"]),
    ("No wait, I meant Bath, not Bristol, that's where I live.", ["home/location||Bath"]),
]

WORK = [
    ("I work at Siemens.", ["work/employer||Siemens"]),
    ("I work for Marks & Spencer in Leeds.", ["work/employer||Marks & Spencer"]),
    ("i work at google", ["work/employer||Google"]),
    ("I recently joined Spotify as a designer.", ["work/employer||Spotify"]),
    ("I'm a nurse.", ["work/role||nurse"]),
    (
        "I'm a senior software engineer at Acme Rail.",
        ["work/role||senior software engineer", "work/employer||Acme Rail"],
    ),
    ("I work as a freelance illustrator.", ["work/role||freelance illustrator"]),
    ("I'm the founder of a small bakery.", ["work/role||founder of a small bakery"]),
    ("My job is teaching maths.", ["work/role||teaching maths"]),
    ("I teach chemistry at a secondary school.", ["work/role||teaches chemistry at a secondary school"]),
    ("I'm retired now.", ["work/role||retired"]),
    ("I no longer work for Philips.", ["-work/employer||Philips"]),
    ("I don't work at Tesco anymore.", ["-work/employer||Tesco"]),
    ("I quit my job at the post office.", ["-work/employer||post office"]),
    ("I'm the CTO of a logistics startup.", ["work/role||CTO of a logistics startup"]),
]

TASTES = [
    ("I love hiking and pottery.", ["preference/likes|hiking|like", "preference/likes|pottery|like"]),
    (
        "I love ramen and sushi but hate natto.",
        ["preference/likes|ramen|like", "preference/likes|sushi|like", "preference/likes|natto|dislike"],
    ),
    ("I really like Thai food", ["preference/likes|thai food|like"]),
    ("I don't like opera.", ["preference/likes|opera|dislike"]),
    ("I can't stand cilantro.", ["preference/likes|cilantro|dislike"]),
    ("i hate mushrooms", ["preference/likes|mushrooms|dislike"]),
    ("I'm a big fan of jazz.", ["preference/likes|jazz|like"]),
    ("I'm not a fan of crowds.", ["preference/likes|crowds|dislike"]),
    ("I prefer tea over coffee.", ["preference/likes|coffee or tea|tea"]),
    ("I prefer trains to planes.", ["preference/likes|planes or trains|trains"]),
    ("My favourite colour is teal.", ["preference/likes|favourite colour|teal"]),
    ("My favorite band is Radiohead.", ["preference/likes|favourite band|Radiohead"]),
    ("My hobbies are chess and fencing.", ["preference/likes|chess|like", "preference/likes|fencing|like"]),
    ("I've always loved fish and chips.", ["preference/likes|fish and chips|like"]),
    ("I like to travel the world.", ["preference/likes|travel the world|like"]),
    ("I enjoy long walks on the beach.", ["preference/likes|long walks on the beach|like"]),
]

TOOLS = [
    ("I use Emacs.", ["preference/tool|emacs|Emacs"]),
    ("I switched from Chrome to Firefox.", ["preference/tool|firefox|Firefox"]),
    ("We migrated from Jenkins to GitHub Actions.", ["preference/tool|github actions|GitHub Actions"]),
    ("My editor is Helix.", ["preference/tool|editor|Helix"]),
    ("I code mostly in Rust.", ["preference/tool|rust|Rust"]),
    ("The whole office uses Slack, me included.", ["preference/tool|slack|Slack"]),
    ("I switched from vegetarian to vegan.", ["diet||vegan"]),
]

STYLE = [
    ("Keep your answers short.", ["preference/style|answers|short"]),
    ("Please be concise.", ["preference/style|answers|concise"]),
    ("I prefer detailed answers.", ["preference/style|answers|detailed"]),
    ("Don't use bullet points, please.", ["preference/style|bullet points|none"]),
    ("No emojis please", ["preference/style|emoji|none"]),
    ("Always use metric units.", ["preference/style|metric units|wanted"]),
    ("Please use British spelling in your answers.", ["preference/style|british spelling|wanted"]),
]

PEOPLE = [
    ("I have a dog called Rex.", ["relation|dog rex|Rex"]),
    ("My wife's name is Olga.", ["relation|wife olga|Olga"]),
    ("My sister’s name is D’Arcy.", ["relation|sister d'arcy|D'Arcy"]),
    (
        "My son D'Angelo's birthday is May 3.",
        ["relation|son d'angelo|D'Angelo", "relation|son d'angelo birthday|May 3 (son D'Angelo)"],
    ),
    ("I have two kids and a cat.", ["relation|kids|two", "relation|cat|a"]),
    ("My son Leo is allergic to eggs.", ["relation|son leo|Leo", "relation|son leo allergy eggs|allergic (son Leo)"]),
    ("My sister is vegan.", ["relation|sister diet|vegan (sister)"]),
    ("My girlfriend lives in Malmö.", ["relation|girlfriend home|Malmö (girlfriend)"]),
    ("My dad is a retired teacher.", ["relation|dad role|retired teacher (dad)"]),
    (
        "My flatmate Joao's birthday is 9 June.",
        ["relation|flatmate joao|Joao", "relation|flatmate joao birthday|9 June (flatmate Joao)"],
    ),
    ("I'm married to Chidi.", ["relation|spouse chidi|Chidi"]),
    ("my daughter loves dinosaurs", ["relation|daughter dinosaurs|like (daughter)"]),
]

AFFAIRS = [
    ("My laptop keeps crashing.", ["issue|laptop|keeps crashing"]),
    ("I'm having trouble with the VPN.", ["issue|vpn|trouble"]),
    ("Our printer won't connect to the wifi.", ["issue|printer|won't connect to the wifi"]),
    ("I can't log in to my account.", ["issue|to their account|cannot"]),
    ("I'm working on a recipe app.", ["project|recipe app|active"]),
    ("We're building a treehouse for the kids.", ["project|treehouse for the kids|active"]),
    ("I'm learning Spanish.", ["project|spanish|active"]),
    ("We decided to use Postgres.", ["decision|use postgres|decided"]),
    ("I've decided against buying a car.", ["decision|buying a car|decided"]),
    ("I never fly at night.", ["general|fly at night|never"]),
    ("I play the cello.", ["general|play the cello|yes"]),
    ("I drive a Skoda.", ["general|drive a skoda|yes"]),
    ("I have asthma.", ["general|asthma|yes"]),
    ("For everyone at home I cook without sugar.", ["general|cook without sugar|yes"]),
    ("Our choir is called Vox Humana.", ["general|choir|Vox Humana"]),
    ("Remember that my bins go out on Tuesday.", ["general|bins go out on tuesday|yes"]),
    (
        "Please note that I have a parking spot behind the church.",
        ["general|have a parking spot behind the church|yes"],
    ),
    ("Don't forget that my car needs diesel.", ["general|car needs diesel|yes"]),
    ("Remember that I'm vegan.", ["diet||vegan"]),
]


ENDED_AND_BESIDES = [
    ("Don't call me Robbie anymore.", ["-identity/name||Robbie"]),
    ("Don't call me Bob.", ["-identity/name||Bob"]),
    ("My name is John Smith.", ["identity/name||John", "general|full name|John Smith"]),
    ("I no longer live in Porto.", ["-home/location||Porto"]),
    ("We moved away from Lyon.", ["-home/location||Lyon"]),
    ("I no longer use Slack.", ["-preference/tool|slack|Slack"]),
    ("I'm no longer a student.", ["-work/role||student"]),
    ("I don't like jazz anymore.", ["preference/likes|jazz|dislike"]),
    ("I quit smoking.", ["preference/likes|smoking|avoid"]),
    ("I stopped eating meat two years ago.", ["preference/likes|meat|avoid", "-diet||eats meat"]),
    ("I ditched WhatsApp for Signal.", ["preference/tool|signal|Signal"]),
    ("I moved from Notion to Obsidian last month.", ["preference/tool|obsidian|Obsidian"]),
    ("As a vegan I find airline food hard.", ["diet||vegan"]),
    ("My address is 14 Mill Road, Cambridge.", ["home/location||14 Mill Road, Cambridge"]),
    ("I'd rather take the train than fly.", ["preference/likes|fly or take the train|take the train"]),
    ("Coffee is my favourite drink.", ["preference/likes|favourite drink|Coffee"]),
    ("We have a cat named Miso and a dog named Udon.", ["relation|cat miso|Miso", "relation|dog udon|Udon"]),
    ("I'm a mother of two.", ["relation|kids|two"]),
    ("I support 🏴󠁧󠁢󠁷󠁬󠁳󠁿 in the football.", ["preference/likes|🏴󠁧󠁢󠁷󠁬󠁳󠁿|like"]),
    ("I opened a bike shop.", ["general|opened a bike shop|happened"]),
    ("I just adopted a greyhound.", ["general|adopted a greyhound|happened"]),
    ("Don't forget I'm diabetic.", ["general|condition|diabetic"]),
    ("For future reference, I take size 43 shoes.", ["general|take size 43 shoes|yes"]),
]


@pytest.mark.parametrize(
    ("said", "learnt"),
    FOOD + SEAT + IDENTITY + HOME + WORK + TASTES + TOOLS + STYLE + PEOPLE + AFFAIRS + ENDED_AND_BESIDES,
)
def test_a_plain_statement_is_learnt(said, learnt, brief):
    """Topic, slot and value of every fact in the sentence, and nothing else."""
    assert brief(said) == learnt


CONTENT = [
    ("I'm vegan.", "The user follows a vegan diet."),
    ("I don't drink wine.", "The user does not drink wine."),
    ("I have a nut allergy.", "The user has a nut allergy."),
    ("We moved to Ghent.", "The user lives in Ghent."),
    ("I can't stand jazz.", "The user cannot stand jazz."),
    ("I switched from Vim to Helix.", "The user switched from Vim to Helix."),
    ("I prefer tea to coffee.", "The user prefers tea rather than coffee."),
    ("I'm the CEO of a pottery studio.", "The user is the CEO of a pottery studio."),
    ("I no longer work at Halden.", "The user no longer works at Halden."),
    ("My son is lactose intolerant.", "The user's son is lactose intolerant."),
    ("I've decided against buying a car.", "The user decided against buying a car."),
    ("We decided to sell our boat.", "The user decided, together with others, to sell their boat."),
    (
        "I always carry a spare key; remember that my spare key is under the mat.",
        "The user's spare key is under the mat.",
    ),
    ("Remember that I take my coffee black.", "The user takes the user's coffee black."),
    ("I rarely watch tv.", "The user rarely watches tv."),
]


@pytest.mark.parametrize(("said", "content"), CONTENT)
def test_content_is_a_whole_sentence_in_the_third_person(said, content, facts):
    """What a reader of the memory sees without the conversation."""
    assert [c.content for c in facts(said)] == [content]
